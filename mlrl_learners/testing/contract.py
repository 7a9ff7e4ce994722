"""Test of the learner interface, `check_learner`.

The checks need neither torch nor an environment. Training on toy tasks is optional.
"""

import contextlib
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlrl_envs.errors import ContractError, MlrlError
from mlrl_learners.errors import ConfigError
from mlrl_learners.testing.toy_results import Effort, play_toys
from mlrl_learners.testing.toy_training import make_with_seed
from mlrl_learners.types import (
    AgentID,
    Completion,
    JointStep,
    Learner,
    Node,
    Rollout,
    RolloutConfig,
)
from mlrl_learners.types.contract import check_answers, check_methods, check_metrics

__all__ = ["check_learner"]

Answers = Sequence[Mapping[AgentID, Sequence[Completion]]]

DEFAULT_AGENTS = ("first", "second")
NUM_UPDATES = 5
TEXTS = ("Describe a city in the clouds:", "", "def f(x):\n\treturn x  # naïve ☃", "word " * 50)


def check_learner(
    factory: Callable[..., Learner],
    *,
    agents: Sequence[AgentID] | None = None,
    learns: bool = False,
    effort: Effort | None = None,
) -> None:
    """Check that a learner implements `mlrl_learners.types.Learner`.

    Args:
        factory: Function that builds the learner, the same one at each call. It is called a few
            times, with a seed if it has an argument.
        agents: Agents of the learner; by default its attribute `agents`, or `first` and `second`.
        learns: Also train on the toys of `mlrl_learners.testing.toys`, with every rollout
            configuration that the learner accepts, and check that the mean return over the seeds
            rises by at least a tenth of the distance to the optimum. Takes some minutes with a
            small model.
        effort: Amount of training on the toys.

    Raises:
        ContractError: If a check fails, or a method of the learner raises an error of another
            library; the message names the first one.
    """
    given = type(factory).__name__
    _require(callable(factory), f"it takes a function that makes a learner, got {given}")
    learner = make_with_seed(factory, 0)
    check_methods(learner)
    rollout = getattr(learner, "rollout", RolloutConfig())
    _require(isinstance(rollout, RolloutConfig), f"rollout is a RolloutConfig, got {rollout!r}")
    if hasattr(learner, "plan_updates"):
        learner.plan_updates(NUM_UPDATES)
    names = agents or tuple(getattr(learner, "agents", DEFAULT_AGENTS))
    observations = [dict.fromkeys(names, text) for text in TEXTS]
    _check_act(learner, observations)
    _check_greedy(learner, observations)
    rollouts = _rollouts(learner, names, spread=1.0)
    _check_metrics(_call(learner, "update", rollouts), "update")
    equal = _rollouts(learner, names, spread=0.0)
    _check_metrics(_call(learner, "update", equal), "update on groups of equal rewards")
    with contextlib.suppress(ConfigError):  # a learner may refuse agents that take turns
        turns = _rollouts(learner, names, spread=1.0, one_by_one=True)
        _check_metrics(_call(learner, "update", turns), "update on agents that take turns")
    _check_act(learner, observations)
    _check_save(factory, learner, observations, _rollouts(learner, names, spread=1.0))
    if learns:
        _check_learns(factory, learner, names, replace(effort or Effort(), rollouts=0))


def _require(holds: bool, requirement: str) -> None:
    if not holds:
        raise ContractError(f"check_learner: {requirement}")


def _check_learns(
    factory: Callable[..., Learner], learner: Learner, agents: Sequence[AgentID], effort: Effort
) -> None:
    for result in play_toys(type(learner).__name__, factory, agents, effort=effort):
        _require(not result.problem, result.problem)


def _call(learner: Learner, name: str, *arguments: object, **options: object) -> Any:  # noqa: ANN401 - what it returns
    """Call a method of the learner, and name it if it raises an error of another library."""
    try:
        return getattr(learner, name)(*arguments, **options)
    except MlrlError:
        raise
    except Exception as error:
        raise ContractError(f"check_learner: {name} raised {error!r}"[:500]) from error


def _check_act(learner: Learner, observations: Sequence[Mapping[AgentID, str]]) -> None:
    _require(_call(learner, "act", []) == [], "act on no observations returns an empty list")
    for num_samples in (1, 3):
        for explore in (True, False):
            answers = _call(learner, "act", observations, num_samples=num_samples, explore=explore)
            _check_answers(answers, observations, num_samples)
    agent = next(iter(observations[0]))
    alone = [{agent: observations[0][agent]}]  # an agent may have left the episode
    _check_answers(_call(learner, "act", alone, num_samples=2), alone, 2)


def _check_answers(
    answers: Answers, observations: Sequence[Mapping[AgentID, str]], num_samples: int
) -> None:
    check_answers(answers, observations, num_samples, "check_learner: act")
    for answer in answers:
        for completions in answer.values():
            for completion in completions:
                _check_tokens(completion)


def _check_tokens(completion: Completion) -> None:
    _require(
        len(completion.token_ids) == len(completion.logprobs),
        "a completion has one log-probability a token",
    )
    _require(
        all(math.isfinite(value) and value <= 1e-6 for value in completion.logprobs),
        "log-probabilities are finite and not above 0",
    )
    nucleus = completion.nucleus
    _require(
        nucleus is None or len(nucleus.sizes) == len(completion.token_ids),
        "a nucleus has one size a token",
    )
    _require(
        completion.finish_reason in ("stop", "length"),
        f"finish_reason is stop or length, got {completion.finish_reason!r}",
    )


def _check_greedy(learner: Learner, observations: Sequence[Mapping[AgentID, str]]) -> None:
    greedy = _greedy(learner, observations)
    _require(greedy == _greedy(learner, observations), "greedy answers (explore=False) do not vary")
    reverse = _greedy(learner, list(reversed(observations)))
    _require(greedy == reverse[::-1], "answers come in the order of the observations")


def _greedy(
    learner: Learner, observations: Sequence[Mapping[AgentID, str]]
) -> list[dict[AgentID, str]]:
    return _texts(_call(learner, "act", observations, explore=False))


def _texts(answers: Answers) -> list[dict[AgentID, str]]:
    return [{agent: group[0].text for agent, group in answer.items()} for answer in answers]


def _check_metrics(metrics: object, where: str) -> None:
    for name, value in check_metrics(metrics, f"check_learner: {where}").items():
        _require(
            math.isfinite(value), f"{where} returns finite floats by name, got {name!r}: {value!r}"
        )


def _check_save(
    factory: Callable[..., Learner],
    learner: Learner,
    observations: Sequence[Mapping[AgentID, str]],
    rollouts: Sequence[Rollout],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        path.mkdir()
        before = _greedy(learner, observations)
        _call(learner, "save", path)
        _require(before == _greedy(learner, observations), "save changes nothing")
        restored = make_with_seed(factory, 0)
        if hasattr(restored, "plan_updates"):
            restored.plan_updates(NUM_UPDATES)
        _call(restored, "load", path)
    _require(
        before == _greedy(restored, observations),
        "after save and load the greedy answers are the same",
    )
    sampled = [
        _texts(_call(one, "act", observations, num_samples=1, explore=True))
        for one in (learner, restored)
    ]
    _require(
        sampled[0] == sampled[1],
        "after save and load the sampled answers are the same: save the random state too",
    )
    for number in (1, 2):  # without the state of the optimizer, the first gives other weights
        one, other = (dict(_call(each, "update", rollouts)) for each in (learner, restored))
        _require(
            one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one),
            f"after save and load, update {number} returns the same: save the optimizer too, "
            f"got {one} and {other}"[:1000],
        )
    _require(
        _greedy(learner, observations) == _greedy(restored, observations),
        "after save, load and two updates the greedy answers are the same: save the optimizer too",
    )


def _same(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9)


def _rollouts(
    learner: Learner, agents: Sequence[AgentID], *, spread: float, one_by_one: bool = False
) -> list[Rollout]:
    """Return two-turn rollouts of the learner's own answers.

    Args:
        learner: Learner that answers.
        agents: Its agents.
        spread: Difference between the highest and the lowest reward, in [0, 1].
        one_by_one: The first agent acts in the first turn and the last in the second; the others
            wait.
    """
    asked = getattr(learner, "rollout", RolloutConfig())
    num_samples = max(2, asked.num_samples)
    acting = [agents[:1], agents[-1:]] if one_by_one else [agents, agents]
    return [
        Rollout(
            env_id="check/learner-v0",
            task_id=str(number),
            agents=tuple(agents),
            root=_node(learner, dict.fromkeys(agents, text), num_samples, spread, acting),
            seed=number,
        )
        for number, text in enumerate(TEXTS[:2])
    ]


def _node(
    learner: Learner,
    observations: Mapping[AgentID, str],
    num_samples: int,
    spread: float,
    acting: Sequence[Sequence[AgentID]],
) -> Node:
    read, waiting = _split(observations, acting[0])
    later, waiting_later = _split(observations, acting[-1])
    (answers,) = _call(learner, "act", [read], num_samples=num_samples)
    is_last = len(acting) == 1
    steps = []
    for sample in range(num_samples):
        child = None
        if sample == 0 and not is_last:  # a chain: the episode continues after one joint action
            child = _node(learner, observations, num_samples, spread, acting[1:])
        reward = 0.5 + spread * sample / num_samples
        is_cut = child is None and not is_last and bool(waiting)
        steps.append(
            JointStep(
                samples=dict.fromkeys(read, sample),
                rewards=dict.fromkeys(observations, reward),
                components={agent: {"reward": reward} for agent in observations},
                infos={agent: {"solved": False} for agent in observations},
                terminated=False,
                truncated=child is None and not is_cut,
                child=child,
                next_observations=later if is_cut else {},
                next_waiting=waiting_later if is_cut else {},
            )
        )
    completions = {agent: tuple(group) for agent, group in answers.items()}
    return Node(2 - len(acting), read, completions, tuple(steps), waiting)


def _split(
    observations: Mapping[AgentID, str], acting: Sequence[AgentID]
) -> tuple[dict[AgentID, str], dict[AgentID, str]]:
    """Return the observations of the agents that act, and of those that wait."""
    read = {agent: text for agent, text in observations.items() if agent in acting}
    return read, {agent: text for agent, text in observations.items() if agent not in acting}
