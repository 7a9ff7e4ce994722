"""Pairs of joint answers to the same prompts, of which one earned more, played or from a file."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlrl_learners.demonstrations import JointTurn, read_joint_turns
from mlrl_learners.errors import ConfigError
from mlrl_learners.functional.logprobs import TokenRow
from mlrl_learners.functional.preferences import largest_gap_pairs
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.types import AgentID, JointStep, Node, Rollout, RolloutConfig

__all__ = [
    "Pair",
    "SignedRow",
    "check_choice",
    "played_pairs",
    "ranked_steps",
    "ranked_turns",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two joint answers to the same prompts, of which one earned more.

    Attributes:
        better: Of each agent.
        worse: Of each agent.
        gap: Return of the better one less that of the worse one, above 0.
    """

    better: Mapping[AgentID, TokenRow]
    worse: Mapping[AgentID, TokenRow]
    gap: float


@dataclass(frozen=True, slots=True)
class SignedRow:
    """A row that adds to the margin of a pair, or takes away from it."""

    pair: int
    sign: float
    row: TokenRow


def check_choice(rollout: RolloutConfig) -> None:
    """Check that the same prompts are answered more than once.

    Raises:
        ConfigError: If they are not.
    """
    if rollout.num_samples < 2:
        raise ConfigError(
            "group_size or rollout.num_samples must be at least 2 where pairs of answers to the "
            f"same prompts are learnt from, got {rollout.num_samples}"
        )


def ranked_steps(
    rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int
) -> Iterator[tuple[Node, JointStep, JointStep, float]]:
    """Yield the pairs of largest gap at every decision point: node, better, worse and gap.

    Args:
        rollouts: What was played.
        gamma: Discount a turn, in [0, 1].
        num_pairs: Most pairs of a decision point, at least 1.
    """
    for rollout in rollouts:
        for node in rollout.root.walk():
            returns = [joint_returns(node, agent, gamma) for agent in rollout.agents]
            team = [math.fsum(each) / len(each) for each in zip(*returns, strict=True)]
            for better, worse in largest_gap_pairs(team, num_pairs):
                yield node, node.steps[better], node.steps[worse], team[better] - team[worse]


def ranked_turns(
    path: Path, num_pairs: int, agents: Sequence[AgentID]
) -> list[list[tuple[JointTurn, JointTurn, float]]]:
    """Return, for each decision point of a file, its pairs of largest gap: better, worse and gap.

    A decision point is what all agents read. Those without a pair are left out.

    Args:
        path: A file of `mlrl collect` with several episodes a task.
        num_pairs: Most pairs of a decision point, at least 1.
        agents: Who is to learn from them.

    Raises:
        ConfigError: If the file is missing, holds no two answers that differ in worth, or none of
            the agents.
    """
    found = read_joint_turns(path)
    _check_agents(path, found, agents)
    points: dict[tuple[tuple[AgentID, str], ...], list[JointTurn]] = {}
    for turn in found:
        points.setdefault(tuple(sorted(turn.observations.items())), []).append(turn)
    pairs = [
        [
            (turns[better], turns[worse], turns[better].earned - turns[worse].earned)
            for better, worse in largest_gap_pairs([turn.earned for turn in turns], num_pairs)
        ]
        for turns in points.values()
    ]
    if not any(pairs):
        raise ConfigError(_without_pairs(path, max(map(len, points.values()), default=0)))
    return [each for each in pairs if each]


def played_pairs(rollouts: Sequence[Rollout], *, gamma: float, num_pairs: int) -> Iterator[Pair]:
    """Yield the pairs of `ranked_steps` as the tokens that were sampled."""
    for node, better, worse, gap in ranked_steps(rollouts, gamma=gamma, num_pairs=num_pairs):
        yield Pair(_rows_of_step(node, better), _rows_of_step(node, worse), gap)


def _check_agents(path: Path, turns: Sequence[JointTurn], agents: Sequence[AgentID]) -> None:
    known = list(dict.fromkeys(agent for turn in turns for agent in turn.actions))
    if known and not set(known) & set(agents):
        raise ConfigError(
            f"{str(path)!r} holds nothing to learn from for {', '.join(agents)}: those who answer "
            f"there are {', '.join(known)}"
        )


def _without_pairs(path: Path, most_answers: int) -> str:
    """Say what is missing where a decision point was answered so often at most."""
    if most_answers > 1:
        return (
            f"in {str(path)!r} all joint answers to the same prompts earned the same; collect more "
            "--samples, or tasks that are neither too easy nor too hard"
        )
    return (
        f"{str(path)!r} holds no two joint answers to the same prompts of which one earned more; "
        "collect with --samples 2 or more"
    )


def _rows_of_step(node: Node, step: JointStep) -> dict[AgentID, TokenRow]:
    answers = {agent: node.completions[agent][number] for agent, number in step.samples.items()}
    return {agent: TokenRow(each.prompt_ids, each.token_ids) for agent, each in answers.items()}
