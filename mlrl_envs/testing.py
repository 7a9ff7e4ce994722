"""Contract test for environments: `check_env(lambda: MyEnv())`.

It checks what PettingZoo's test suites do not: episodes with infos are deterministic for a seed and
a sequence of actions; copies and pickles made during an episode step in the same way; texts are in
their spaces; components sum to the reward and stay within `reward_range`; no text raises an error;
mistakes of callers raise an error and change nothing. Run PettingZoo's `parallel_api_test` as well.
"""

import copy
import json
import math
import pickle
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Text

from mlrl_envs.errors import ContractError, InfraError
from mlrl_envs.types import AgentID, StepResult, TextEnv

if TYPE_CHECKING:
    from mlrl_envs.auditing.honest import Corpus

__all__ = ["INFO_KEYS", "JUNK_TEXTS", "check_env"]

MakeEnv = Callable[[], TextEnv]

INFO_KEYS = frozenset(("task_id", "turn", "components", "solved", "diagnostics"))
TOLERANCE = 1e-9

JUNK_TEXTS = (
    "",
    " \n\t\n",
    "\x00",
    "\ud800 and \udfff",
    "\U0001f642 \u202e \u0000 \ufeff",
    "```python\n",
    "``````\n```",
    "```python\ndef f(:\n```",
    "(" * 10_000,
    "x" * 1_000_000,
    "def f():\n" + " " * 5 + "return (" * 500,
    "import os\n" * 2_000,
    "<tool_call>{" * 100,
    "None",
)


def check_env(
    make_env: MakeEnv, *, seed: int = 0, audit: bool = False, honest: "Corpus | None" = None
) -> None:
    """Check an environment against the contract.

    Args:
        make_env: Returns a new environment, the same for each call.
        seed: Seed of the episodes.
        audit: Whether to attack the reward, too; see `mlrl_envs.auditing.check`.
        honest: Honest answers for the audit, see `mlrl_envs.audit`.

    Raises:
        ContractError: If a rule is violated; the message names the rule and the value found.
        InvalidArgumentError: If an audit has no honest answers.
        InfraError: If the infrastructure fails, which does not depend on the environment.
    """
    for check in (
        _check_names_and_spaces,
        _check_reset,
        _check_episode,
        _check_views,
        _check_determinism,
        _check_copies,
        _check_junk,
        _check_mistakes,
    ):
        try:
            check(make_env, seed)
        except (ContractError, InfraError):
            raise
        except Exception as error:
            raise ContractError(f"{check.__name__[1:]} ran into {error!r}"[:1000]) from error
    if audit:
        from mlrl_envs.auditing.check import check_reward

        check_reward(make_env(), honest=honest, seed=seed)


def _check_names_and_spaces(make_env: MakeEnv, seed: int) -> None:  # noqa: ARG001  common signature of the checks
    env = make_env()
    agents = env.possible_agents
    _require(bool(agents), "possible_agents names at least one agent", agents)
    _require(len(set(agents)) == len(agents), "agents have different names", agents)
    _require(env.agents == [], "agents is empty before reset", env.agents)
    _require("name" in env.metadata, "metadata has a name", env.metadata)
    low, high = env.reward_range
    _require(low < high, "reward_range is (low, high) with low < high", (low, high))
    _require(env.max_turns >= 1, "max_turns is at least 1", env.max_turns)
    _require(env.num_tasks >= 1, "num_tasks is at least 1", env.num_tasks)
    for agent in agents:
        for name in ("observation_space", "action_space"):
            space = getattr(env, name)(agent)
            _require(isinstance(space, Text), f"{name}({agent!r}) is a text space", space)
            again = getattr(env, name)(agent)
            _require(space is again, f"{name}({agent!r}) is the same object each time", space)
            _require(space.contains("a\n\u03bb"), f"{name}({agent!r}) holds any text", space)


def _check_reset(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    observations, infos = env.reset(seed=seed, options={"an unknown option": 1})
    _require(env.agents == env.possible_agents, "all agents act after reset", env.agents)
    _check_observations(env, observations)
    _check_infos(env, infos, turn=0)
    env.agents.append("nobody")
    _require("nobody" not in env.agents, "agents is a list of the caller's own", env.agents)
    again, _ = env.reset(seed=seed)
    _require(again == observations, "the same seed begins the same episode", (again, observations))


def _check_episode(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    for episode in range(3):
        env.reset(seed=seed + episode)
        for turn in range(1, env.max_turns + 1):
            result = env.step(_actions(env, turn))
            _check_step(env, result, turn)
            if not env.agents:
                break
        _require(
            env.agents == [], f"an episode ends within max_turns = {env.max_turns}", env.agents
        )


def _check_step(env: TextEnv, result: StepResult, turn: int) -> None:
    observations, rewards, terminations, truncations, infos = result
    agents = env.possible_agents
    _check_observations(env, observations)
    _check_infos(env, infos, turn=turn)
    columns: Sequence[Mapping[AgentID, object]] = (rewards, terminations, truncations)
    for name, column in zip(("rewards", "terminations", "truncations"), columns, strict=True):
        _require(set(column) == set(agents), f"{name} have the agents' keys", column)
    for agent in agents:
        _check_reward(env, agent, rewards[agent], infos[agent]["components"])
        ends = terminations[agent], truncations[agent]
        _require(all(type(end) is bool for end in ends), "ends of an episode are bool", ends)
        _require(ends != (True, True), "an episode is terminated or truncated, not both", ends)
        _require((agent in env.agents) != any(ends), f"{agent!r} acts until its end", ends)
    if turn == env.max_turns:
        _require(not env.agents, f"the episode ends at max_turns = {turn}", env.agents)


def _check_reward(env: TextEnv, agent: AgentID, reward: float, components: Any) -> None:  # noqa: ANN401  the value to be checked
    _require(
        isinstance(reward, float) and math.isfinite(reward), "rewards are finite floats", reward
    )
    assert isinstance(reward, float)  # noqa: S101  for the type checker
    low, high = env.reward_range
    inside = low - TOLERANCE <= reward <= high + TOLERANCE
    _require(inside, f"the reward of {agent!r} is in reward_range {low, high}", reward)
    total = math.fsum(components.values())
    same = math.isclose(total, reward, abs_tol=TOLERANCE)
    _require(same, f"the components of {agent!r} sum to its reward {reward}", dict(components))


def _check_observations(env: TextEnv, observations: Mapping[AgentID, str]) -> None:
    keys = set(observations)
    _require(keys == set(env.possible_agents), "observations have the agents' keys", keys)
    for agent, text in observations.items():
        _require(type(text) is str, f"what {agent!r} reads is a plain str", type(text))
        inside = env.observation_space(agent).contains(text)
        _require(inside, f"what {agent!r} reads is in its space", text[:200])


def _check_infos(env: TextEnv, infos: Mapping[AgentID, Mapping[str, Any]], *, turn: int) -> None:
    keys = set(infos)
    _require(keys == set(env.possible_agents), "infos have the agents' keys", keys)
    for agent, info in infos.items():
        _require(
            set(info) == INFO_KEYS,
            f"the info of {agent!r} has the keys {sorted(INFO_KEYS)}",
            sorted(info),
        )
        _require(info["turn"] == turn, f"the info of {agent!r} says turn {turn}", info["turn"])
        _require(type(info["solved"]) is bool, "solved is a bool", info["solved"])
        try:
            json.dumps(info, allow_nan=False)
        except (TypeError, ValueError) as error:
            _require(False, f"the info of {agent!r} is JSON", error)


def _check_views(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    env.reset(seed=seed)
    state = env.state()
    _require(isinstance(state, str), "state() is a str", type(state))
    _require(env.state_space.contains(state), "state() is in state_space", state[:200])
    references = env.reference_actions()
    if references is not None:
        keys = set(references)
        _require(keys == set(env.agents), "reference_actions has the agents' keys", keys)
        *_, infos = env.step(references)
        solved = all(info["solved"] for info in infos.values())
        _require(solved, "reference_actions solves the task", infos)
    env.close()
    try:
        env.close()
    except Exception as error:
        raise ContractError(f"close can be called twice; it gave {error!r}") from error


def _check_determinism(make_env: MakeEnv, seed: int) -> None:
    first, second = (_transcript(make_env(), seed) for _ in range(2))
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        _require(one == other, f"entry {number} of the transcript is the same again", (one, other))


def _check_copies(make_env: MakeEnv, seed: int) -> None:
    ways: tuple[tuple[str, Callable[[TextEnv], TextEnv]], ...] = (
        ("a deep copy", copy.deepcopy),
        ("a pickle", lambda env: pickle.loads(pickle.dumps(env))),  # noqa: S301  pickled in the same expression
    )
    for name, clone in ways:
        env = make_env()
        env.reset(seed=seed)
        for turn in range(1, env.max_turns + 1):
            try:
                twin = clone(env)
            except Exception as error:
                raise ContractError(f"{name} can be made; it gave {error!r}") from error
            actions, before = _actions(env, turn), env.state()
            of_twin = twin.step(actions)
            _require(env.state() == before, f"stepping {name} leaves the original alone", turn)
            same = of_twin == env.step(actions)
            _require(same, f"{name} made before turn {turn} steps like the original", of_twin)
            if not env.agents:
                break


def _check_junk(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    for text in JUNK_TEXTS:
        env.reset(seed=seed)
        try:
            result = env.step(dict.fromkeys(env.possible_agents, text))
        except Exception as error:
            raise ContractError(f"junk never raises: {text[:40]!r} gave {error!r}") from error
        _check_step(env, result, 1)


def _check_mistakes(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    fair = dict.fromkeys(env.possible_agents, "text")
    _require_raises(env, fair, "step before reset")
    env.reset(seed=seed)
    before = env.state()
    first = env.possible_agents[0]
    _require_raises(env, {}, "a joint action without agents")
    _require_raises(env, {**fair, "nobody": "text"}, "an action of an unknown agent")
    for value in (None, 3, b"text", ["text"]):
        _require_raises(env, {**fair, first: value}, f"the action {value!r}")
    _require(env.state() == before, "a refused action changes nothing", env.state()[:200])
    while env.agents:
        env.step(fair)
    _require_raises(env, fair, "step after the end")
    for options in ({"task_index": -1}, {"task_index": 10**9}, {"task_id": "no such task"}):
        try:
            env.reset(options=options)
        except (ValueError, LookupError):
            continue
        _require(False, f"reset(options={options}) raises ValueError", "it did not")


def _actions(env: TextEnv, turn: int) -> dict[AgentID, str]:
    # Texts with prose and code that differ by turn and agent; deterministic, so that runs repeat.
    return {
        agent: f"Turn {turn}: the answer of {agent}.\n```python\ndef {agent}(*args):\n"
        f"    return {turn + number}\n```"
        for number, agent in enumerate(env.possible_agents)
    }


def _transcript(env: TextEnv, seed: int) -> Sequence[object]:
    entries: list[object] = [env.reset(seed=seed)]
    for _ in range(2):  # the second episode is reset without a seed
        for turn in range(1, env.max_turns + 1):
            entries.append(env.step(_actions(env, turn)))
            entries.append(env.state())
            if not env.agents:
                break
        entries.append(env.reset())
    return entries


def _require_raises(env: TextEnv, actions: Any, what: str) -> None:  # noqa: ANN401  deliberately of a wrong type
    try:
        env.step(actions)
    except (ValueError, RuntimeError, TypeError, KeyError):
        return
    _require(False, f"{what} raises", "it did not")


def _require(holds: bool, rule: str, found: object) -> None:
    if not holds:
        raise ContractError(f"{rule}; found {found!r}"[:1000])
