"""Contract test for environments: `check_env(lambda: MyEnv())`.

It checks what PettingZoo's test suites do not: episodes with infos are deterministic for a seed and
a sequence of actions; copies and pickles made during an episode step in the same way; texts are in
their spaces; components sum to the reward and stay within `reward_range`; no text raises an error;
actions of agents that wait are ignored; mistakes of callers raise an error and change nothing. Run
PettingZoo's `parallel_api_test` as well.
"""

import copy
import pickle
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gymnasium.spaces import Text

from mlrl_envs.errors import ContractError, InfraError
from mlrl_envs.reference_actions import reference_of
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.shell.roster import acting_agents
from mlrl_envs.testing.fallbacks import completing, what_it_lacks
from mlrl_envs.testing.junk import JUNK_TEXTS
from mlrl_envs.testing.steps import (
    check_acting,
    check_infos,
    check_observations,
    check_step,
    require,
)
from mlrl_envs.types import AgentID, TextEnv

if TYPE_CHECKING:
    from mlrl_envs.auditing.honest import Corpus

__all__ = ["check_env"]

MakeEnv = Callable[[], TextEnv]
Infos = Mapping[AgentID, Mapping[str, Any]]


def check_env(
    make_env: MakeEnv, *, seed: int = 0, audit: bool = False, honest: "Corpus | None" = None
) -> None:
    """Check an environment against the contract.

    What PettingZoo does not ask for may be missing (`mlrl_envs.testing.fallbacks.OPTIONAL`, and
    keys of the infos); a warning lists it with what it is for.

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
    checked = completing(make_env)
    for check in (
        _check_names_and_spaces,
        _check_reset,
        _check_episode,
        _check_views,
        _check_determinism,
        _check_copies,
        _check_junk,
        _check_waiting,
        _check_mistakes,
    ):
        try:
            check(checked, seed)
        except (ContractError, InfraError):
            raise
        except Exception as error:
            raise ContractError(f"{check.__name__[1:]} ran into {error!r}"[:1000]) from error
    if lacking := what_it_lacks(checked(), seed):
        warnings.warn(lacking, stacklevel=2)
    if audit:
        from mlrl_envs.auditing.check import check_reward

        check_reward(make_env(), honest=honest, seed=seed)


def _check_names_and_spaces(make_env: MakeEnv, seed: int) -> None:  # noqa: ARG001  common signature of the checks
    env = make_env()
    agents = env.possible_agents
    require(bool(agents), "possible_agents names at least one agent", agents)
    require(len(set(agents)) == len(agents), "agents have different names", agents)
    require(env.agents == [], "agents is empty before reset", env.agents)
    require("name" in env.metadata, "metadata has a name", env.metadata)
    low, high = env.reward_range
    require(low < high, "reward_range is (low, high) with low < high", (low, high))
    require(env.max_turns >= 1, "max_turns is at least 1", env.max_turns)
    require(env.num_tasks >= 1, "num_tasks is at least 1", env.num_tasks)
    for agent in agents:
        for name in ("observation_space", "action_space"):
            space = getattr(env, name)(agent)
            require(isinstance(space, Text), f"{name}({agent!r}) is a text space", space)
            again = getattr(env, name)(agent)
            require(space is again, f"{name}({agent!r}) is the same object each time", space)
            require(space.contains("a\n\u03bb"), f"{name}({agent!r}) holds any text", space)


def _check_reset(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    observations, infos = env.reset(seed=seed, options={"an unknown option": 1})
    there = getattr(env, "episode_agents", env.possible_agents)  # a mixture: those of its member
    require(env.agents == there, "all agents are in the episode after reset", env.agents)
    check_observations(env, observations, there)
    check_infos(infos, turn=0, told=there)
    check_acting(env, infos)
    if isinstance(env, TextParallelEnv):  # others keep a plain list, as is usual in PettingZoo
        env.agents.append("nobody")
        require("nobody" not in env.agents, "agents is a list of the caller's own", env.agents)
    again, _ = env.reset(seed=seed)
    require(again == observations, "the same seed begins the same episode", (again, observations))


def _check_episode(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    for episode in range(3):
        _, infos = env.reset(seed=seed + episode)
        for turn in range(1, env.max_turns + 1):
            told = list(env.agents)
            result = env.step(_actions(env, infos, turn))
            check_step(env, result, turn, told)
            infos = result[-1]
            if not env.agents:
                break
        require(env.agents == [], f"an episode ends within max_turns = {env.max_turns}", env.agents)


def _check_views(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    _, infos = env.reset(seed=seed)
    state = env.state()
    require(isinstance(state, str), "state() is a str", type(state))
    require(env.state_space.contains(state), "state() is in state_space", state[:200])
    if reference_of(env) is not None:
        _check_references(env, infos)
    env.close()
    try:
        env.close()
    except Exception as error:
        raise ContractError(f"close can be called twice; it gave {error!r}") from error


def _check_references(env: TextEnv, infos: Infos) -> None:
    """Play the reference actions to the end; in most environments it comes after one turn."""
    told, turn = list(env.agents), 0
    while env.agents:
        references = env.reference_actions()
        require(references is not None, "all turns of a task have reference actions", turn)
        keys = set(references or {})
        require(
            keys == set(acting_agents(env.agents, infos)),
            "reference_actions has the agents' keys",
            keys,
        )
        told, turn = list(env.agents), turn + 1
        result = env.step(references or {})
        check_step(env, result, turn, told)
        infos = result[-1]
    if not env.metadata.get("competitive", False):  # else the best move need not solve anything
        solved = all(infos[agent]["solved"] for agent in told)
        require(solved, "reference_actions solves the task", infos)


def _check_determinism(make_env: MakeEnv, seed: int) -> None:
    first, second = (_transcript(make_env(), seed) for _ in range(2))
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        require(one == other, f"entry {number} of the transcript is the same again", (one, other))


def _check_copies(make_env: MakeEnv, seed: int) -> None:
    ways: tuple[tuple[str, Callable[[TextEnv], TextEnv]], ...] = (
        ("a deep copy", copy.deepcopy),
        ("a pickle", lambda env: pickle.loads(pickle.dumps(env))),  # noqa: S301  pickled in the same expression
    )
    for name, clone in ways:
        env = make_env()
        _, infos = env.reset(seed=seed)
        for turn in range(1, env.max_turns + 1):
            try:
                twin = clone(env)
            except Exception as error:
                raise ContractError(f"{name} can be made; it gave {error!r}") from error
            actions, before = _moves(env, infos, turn), env.state()
            of_twin = twin.step(actions)
            require(env.state() == before, f"stepping {name} leaves the original alone", turn)
            result = env.step(actions)
            same = of_twin == result
            require(same, f"{name} made before turn {turn} steps like the original", of_twin)
            infos = result[-1]
            if not env.agents:
                break


def _check_junk(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    for text in JUNK_TEXTS:
        _, infos = env.reset(seed=seed)
        unasked, turn = set(env.agents), 0  # every agent writes junk once
        while unasked & set(env.agents):
            told, turn = list(env.agents), turn + 1
            acting = acting_agents(told, infos)
            unasked -= set(acting)
            try:
                result = env.step(dict.fromkeys(acting, text))
            except Exception as error:
                raise ContractError(f"junk never raises: {text[:40]!r} gave {error!r}") from error
            check_step(env, result, turn, told)
            infos = result[-1]


def _check_waiting(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    _, infos = env.reset(seed=seed)
    twin = copy.deepcopy(env)  # for the whole episode, because a text may count in a later turn
    for turn in range(1, env.max_turns + 1):
        actions = _actions(env, infos, turn)
        extra = dict.fromkeys(env.agents, "an answer that nobody asked for")
        of_twin, result = twin.step({**extra, **actions}), env.step(actions)
        require(of_twin == result, "the action of an agent that waits is ignored", of_twin)
        infos = result[-1]
        if not env.agents:
            break


def _check_mistakes(make_env: MakeEnv, seed: int) -> None:
    env = make_env()
    fair = dict.fromkeys(env.possible_agents, "text")
    _require_raises(env, fair, "step before reset")
    _, infos = env.reset(seed=seed)
    before = env.state()
    first, *others = acting_agents(env.agents, infos)
    _require_raises(env, {}, "a joint action without agents")
    _require_raises(env, {**fair, "nobody": "text"}, "an action of an unknown agent")
    _require_raises(env, dict.fromkeys(others, "text"), f"a joint action without {first!r}")
    for value in (None, 3, b"text", ["text"]):
        _require_raises(env, {**fair, first: value}, f"the action {value!r}")
    require(env.state() == before, "a refused action changes nothing", env.state()[:200])
    while env.agents:
        *_, infos = env.step(dict.fromkeys(acting_agents(env.agents, infos), "text"))
    _require_raises(env, fair, "step after the end")
    for options in ({"task_index": -1}, {"task_index": 10**9}, {"task_id": "no such task"}):
        try:
            env.reset(options=options)
        except (ValueError, LookupError):
            continue
        require(False, f"reset(options={options}) raises ValueError", "it did not")


def _actions(env: TextEnv, infos: Infos, turn: int) -> dict[AgentID, str]:
    # Texts with prose and code that differ by turn and agent; deterministic, so that runs repeat.
    return {
        agent: f"Turn {turn}: the answer of {agent}.\n```python\ndef {agent}(*args):\n"
        f"    return {turn + env.possible_agents.index(agent)}\n```"
        for agent in acting_agents(env.agents, infos)
    }


def _moves(env: TextEnv, infos: Infos, turn: int) -> dict[AgentID, str]:
    """Return reference actions where agents take turns, because other texts may end a game."""
    references = reference_of(env) if _waits(env, infos) else None
    return _actions(env, infos, turn) if references is None else dict(references)


def _waits(env: TextEnv, infos: Infos) -> bool:
    return len(acting_agents(env.agents, infos)) < len(env.agents)


def _transcript(env: TextEnv, seed: int) -> Sequence[object]:
    observations, infos = env.reset(seed=seed)
    entries: list[object] = [(observations, infos)]
    for _ in range(2):  # the second episode is reset without a seed
        for turn in range(1, env.max_turns + 1):
            result = env.step(_moves(env, infos, turn))
            infos = result[-1]
            entries += [result, env.state()]
            if not env.agents:
                break
        observations, infos = env.reset()
        entries.append((observations, infos))
    return entries


def _require_raises(env: TextEnv, actions: Any, what: str) -> None:  # noqa: ANN401  deliberately of a wrong type
    try:
        env.step(actions)
    except (ValueError, RuntimeError, TypeError, KeyError):
        return
    require(False, f"{what} raises", "it did not")
