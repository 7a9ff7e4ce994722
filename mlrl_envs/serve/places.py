"""Environments that a server offers: an id with options, made once and copied for each session."""

import copy
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.naming import options_of
from mlrl_envs.registration import WORKFLOW, make, registry
from mlrl_envs.serve.messages import from_json, to_json
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.fingerprint import fingerprint

__all__ = ["Pace", "Place", "Places", "check_options"]

MAX_PLACES = 64
MAX_OPTION_BYTES = 1 << 20
QUICK_SECONDS = 0.001
QUICK_STEPS = 16
# Not a path, not a file (no dot), not "module:function", and nothing that escapes a name.
_WORD = re.compile(r"[\w-]{0,64}")
_OWN = ("sandbox", "limits", "render_mode", "env_id")


@dataclass(slots=True)
class Pace:
    """How long the steps of an environment take.

    Attributes:
        quick_steps: Number of steps since one took over `QUICK_SECONDS`.
    """

    quick_steps: int = 0

    @property
    def is_quick(self) -> bool:
        """Whether the last steps were all quick, so that the next one probably is."""
        return self.quick_steps >= QUICK_STEPS

    def note(self, seconds: float) -> None:
        """Note how long a step took."""
        self.quick_steps = self.quick_steps + 1 if seconds < QUICK_SECONDS else 0


@dataclass(frozen=True, slots=True)
class Place:
    """An environment that sessions are copied from.

    Attributes:
        env: The environment, never reset; linear sessions get one of their own.
        env_id: Its id.
        options: Options of `mlrl_envs.make`.
        forkable: Whether sessions are copied, so that several steps can start from each.
        deterministic: Whether the same seed and actions give the same episode.
        description: What a client needs to know about the environment, as JSON values.
        pace: How long its steps take.
    """

    env: Any
    env_id: str
    options: Mapping[str, Any]
    forkable: bool
    deterministic: bool
    description: Mapping[str, Any]
    pace: Pace = field(default_factory=Pace)

    def fresh(self) -> Any:  # noqa: ANN401  any environment
        """Return an environment that no other session uses."""
        return self.fork(self.env) if self.forkable else _make(self.env_id, self.options)

    @staticmethod
    def fork(env: Any) -> Any:  # noqa: ANN401  any environment
        """Return a copy; a shallow one where the state is immutable."""
        # The generator is shared: `begin` sets another one before it draws.
        shares = getattr(type(env), "__deepcopy__", None) is TextParallelEnv.__deepcopy__
        return copy.copy(env) if shares else copy.deepcopy(env)

    def begin(self, opening: Any) -> tuple[Any, Any, bytes]:  # noqa: ANN401  a message
        """Start an episode.

        Returns:
            The environment, what `reset` returned, and the state of its generator of tasks.

        Raises:
            InvalidArgumentError: See `reset` of the environment.
        """
        env = self.fresh()
        seed = int(opening.seed) if opening.seed else None
        if opening.generator and isinstance(env, TextParallelEnv):
            generator = np.random.default_rng(0)
            generator.bit_generator.state = from_json(opening.generator)
            env.np_random = generator
        options = from_json(opening.options) if opening.has_options else None
        begun = env.reset(seed=seed, options=options)
        state = b""
        if isinstance(env, TextParallelEnv) and env.np_random is not None:
            state = to_json(env.np_random.bit_generator.state)
        return env, begun, state


class Places:
    """The environments of a server, by id and options; the least recently used are dropped.

    Args:
        ids: Ids that clients may ask for.
        trust_options: Whether clients may pass any option; see `check_options`.
    """

    def __init__(self, ids: Sequence[str], *, trust_options: bool = False) -> None:
        for env_id in ids:
            registry[env_id]  # an unknown id raises
        self.ids = tuple(ids)
        self._trust_options = trust_options
        self._places: OrderedDict[tuple[str, bytes], Place] = OrderedDict()

    def find(self, asked: Any) -> Place:  # noqa: ANN401  a message
        """Return the environment that a request names; the first call makes it.

        Raises:
            UnknownNameError: If the server does not offer the id, or there is no such option.
            InvalidArgumentError: If an option has a bad value or is not allowed.
            DataNotFoundError: If the data set is not found.
        """
        key = (asked.env_id, asked.options)
        if key in self._places:
            self._places.move_to_end(key)
            return self._places[key]
        if asked.env_id not in self.ids:
            raise unknown_name("environment of this server", asked.env_id, self.ids)
        if len(asked.options) > MAX_OPTION_BYTES and not self._trust_options:
            raise InvalidArgumentError(
                f"options have at most {MAX_OPTION_BYTES} bytes, got {len(asked.options)}"
            )
        options = _options_in(asked.options)
        check_options(options, trust=self._trust_options)
        self._places[key] = place = _place(asked.env_id, options)
        if len(self._places) > MAX_PLACES:
            self._places.popitem(last=False)
        return place


def check_options(options: Mapping[str, Any], *, trust: bool = False) -> None:
    """Refuse options of a client that could read files, import code or open connections.

    Numbers, booleans, null, short words without a dot, and lists of them are allowed; files, paths,
    mappings and `"module:function"` are not. The mapping of a workflow is allowed: its graph holds
    names and texts only, and `mlrl_envs.workflows.checks` limits its size.

    Raises:
        InvalidArgumentError: If an option is not allowed.
    """
    for name, value in options.items():
        if name in _OWN:
            raise InvalidArgumentError(f"option {name!r} is a matter of the server; leave it out")
        if trust or (name == WORKFLOW and isinstance(value, dict)):
            continue
        values = value if isinstance(value, list) else [value]
        plain = all(
            each is None
            or isinstance(each, bool | int | float)
            or (isinstance(each, str) and _WORD.fullmatch(each))
            for each in values
        )
        if not plain or "path" in name or (name == "prompts" and isinstance(value, str)):
            raise InvalidArgumentError(
                f"the server takes only numbers and words as options, got {name}={value!r}"[:300]
                + "; start it with --trust-options if all clients may name files and code"
            )


def _options_in(data: bytes) -> dict[str, Any]:
    """Return the options of a request; empty data and null are none."""
    try:
        options = from_json(data)
    except (ValueError, RecursionError):
        options = data
    if not isinstance(options, dict | None):
        raise InvalidArgumentError(f"options must be a JSON object, got {data[:100]!r}")
    return options or {}


def _place(env_id: str, options: Mapping[str, Any]) -> Place:
    env = _make(env_id, options)
    metadata = getattr(env, "metadata", None) or {}
    forkable = metadata.get(
        "forkable", isinstance(env, TextParallelEnv) or _copies(env_id, options)
    )
    deterministic = metadata.get("deterministic", _is_deterministic(env))
    description = {
        **_described(env),
        "options": options_of(env_id),
        "forkable": bool(forkable),
        "deterministic": bool(deterministic),
    }
    return Place(env, env_id, dict(options), bool(forkable), bool(deterministic), description)


def _described(env: Any) -> dict[str, Any]:  # noqa: ANN401  any environment
    return {
        "agents": list(env.possible_agents),
        "num_tasks": getattr(env, "num_tasks", None),
        "max_turns": getattr(env, "max_turns", None),
        "reward_range": list(getattr(env, "reward_range", ())) or None,
        "metadata": _metadata(env),
        "spaces": {
            agent: [*_lengths(env.observation_space(agent)), *_lengths(env.action_space(agent))]
            for agent in env.possible_agents
        },
        "state_space": _lengths(getattr(env, "state_space", None)),
        "fingerprint": fingerprint(env),
    }


def _make(env_id: str, options: Mapping[str, Any]) -> Any:  # noqa: ANN401  any environment
    return make(env_id, **options)


def _copies(env_id: str, options: Mapping[str, Any]) -> bool:
    """Return whether a running episode can be copied; tried on an environment of its own."""
    env = _make(env_id, options)
    try:
        env.reset(seed=0)
        copy.deepcopy(env)
    except Exception:  # noqa: BLE001  whatever it raises, it cannot be copied
        return False
    finally:
        env.close()
    return True


def _is_deterministic(env: Any) -> bool:  # noqa: ANN401  any environment
    """Return whether an environment of this project asks no language model."""
    if not isinstance(env, TextParallelEnv):
        return False
    family: Any = env.family
    config = getattr(family, "config", None)
    asked = (getattr(family, "expert", None), *(vars(config).values() if config else ()))
    return not any(hasattr(each, "chat_many") for each in asked)


def _metadata(env: Any) -> dict[str, Any]:  # noqa: ANN401  any environment
    found = {}
    for name, value in (getattr(env, "metadata", None) or {}).items():
        try:
            to_json(value)
        except (TypeError, ValueError):
            continue  # an object that only its own process can use
        found[name] = value
    return found


def _lengths(space: Any) -> list[int]:  # noqa: ANN401  any space
    low, high = getattr(space, "min_length", 0), getattr(space, "max_length", 10_000_000)
    return [int(low), int(high)]
