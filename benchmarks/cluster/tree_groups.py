"""Seconds of rollouts whose trees wait for one another, and in groups that do not.

    python -m benchmarks.cluster.tree_groups [--steps 0 0.5 1 2] [--turns 6] [--trees 16] [--json]

A team of two agents with one tiny model plays `--trees` chains of `--turns` turns in an environment
whose steps sleep: `ours` is stepped in the thread of the trainer, `served` says that it may be
stepped in several threads, as environments of servers do. `level` lets all trees wait at every
level. A step takes as long as given, relative to the seconds that a level needs to be sampled.

Prediction, for `T` turns that are sampled in `S` seconds each, steps of `E` seconds and `n` groups:
`T (S + E)` for levels; for groups `T max(S, S / n + E)` and what the last group is behind, if each
is stepped in a thread. The thread of the trainer waits for other groups as long as a step takes:
`T (S + E / 2)`, and levels where `E` is at least `S`.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from mlrl_learners.algorithms.team_players import TeamPlayers
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.types import RolloutConfig

__all__ = ["Sleeper", "main", "predicted", "rows"]

SAMPLES = 4


class Sleeper:
    """An environment of two agents whose steps sleep.

    Args:
        turns: Turns of an episode.
        seconds: Duration of a step, of however many environments at once.
        parallel: Whether several threads may step.
    """

    metadata: Mapping[str, Any] = {}
    batch_key = "sleep"

    def __init__(self, turns: int, seconds: float, *, parallel: bool) -> None:
        self.turns, self.seconds, self.parallel_steps = turns, seconds, parallel
        self.possible_agents = ["left", "right"]
        self.agents: list[str] = []
        self.turn = 0

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:  # noqa: ANN401, ARG002
        """Start an episode."""
        self.turn, self.agents = 0, list(self.possible_agents)
        return self._told(seed or 0), {agent: {} for agent in self.agents}

    def attempt(self, actions: Mapping[str, str]) -> Mapping[str, str]:
        """Return the actions."""
        return actions

    def score_batch(
        self,
        envs: Sequence[Any],
        attempts: Sequence[Any],
        errors: str = "raise",  # noqa: ARG002
    ) -> list[Any]:
        """Sleep, and return a reward for each environment."""
        time.sleep(self.seconds)
        return [0.5 for _ in zip(envs, attempts, strict=True)]

    def advance(self, score: float) -> tuple[Any, ...]:
        """Go on to the next turn."""
        self.turn += 1
        agents, over = list(self.agents), self.turn == self.turns
        self.agents = [] if over else agents
        rewards, ends = dict.fromkeys(agents, score), dict.fromkeys(agents, over)
        return self._told(self.turn), rewards, ends, ends, {agent: {} for agent in agents}

    def step(self, actions: Mapping[str, str]) -> tuple[Any, ...]:
        """Play one joint action."""
        return self.advance(self.score_batch([self], [self.attempt(actions)])[0])

    def _told(self, number: int) -> dict[str, str]:
        return dict.fromkeys(self.possible_agents, f"write on, part {number}")


class Level:
    """A team whose trees wait for one another at every level.

    Args:
        team: The team.
    """

    def __init__(self, team: TeamPlayers) -> None:
        self._team = team

    def act(self, observations: Any, **options: Any) -> Any:  # noqa: ANN401
        """Answer as the team."""
        return self._team.act(observations, **options)  # type: ignore[attr-defined]


def predicted(kind: str, turns: int, sampled: float, step: float, groups: int) -> float:
    """Return the predicted seconds of the rollouts.

    Args:
        kind: `level`, `ours` or `served`.
        turns: Turns of an episode, T.
        sampled: Seconds that a level needs to be sampled, S.
        step: Seconds of a step, E.
        groups: Number of groups, n.
    """
    if kind == "level":
        return turns * (sampled + step)
    if kind == "served":
        return turns * max(sampled, sampled / groups + step) + min(step, sampled)
    return turns * (sampled + (step if step >= sampled else step / 2))


def team(seed: int) -> TeamPlayers:
    """Return a team with one tiny model."""
    import mlrl_learners

    return mlrl_learners.make(  # type: ignore[return-value]  # a team
        "magrpo",
        model="tiny-random",
        agents=["left", "right"],
        team={"share_weights": True},
        sampling={"max_new_tokens": 16},
        compute={"device": "cpu", "max_rows": 32},
        seed=seed,
    )


def seconds(kind: str, turns: int, trees: int, step: float) -> float:
    """Return the measured seconds of the rollouts."""
    player = team(0)
    actor: Any = Level(player) if kind == "level" else player
    envs = [Sleeper(turns, step, parallel=kind == "served") for _ in range(trees)]
    config = RolloutConfig(num_samples=SAMPLES, branching="chain")
    started = time.perf_counter()
    found = collect_rollouts(
        envs, actor, config, task_options=[{}] * trees, seeds=list(range(trees))
    )
    taken = time.perf_counter() - started
    if len(found.rollouts) != trees:
        raise RuntimeError(f"{len(found.failures)} episodes failed")
    return taken


def rows(turns: int, trees: int, steps: Sequence[float]) -> list[dict[str, Any]]:
    """Return a row for each duration of a step and each kind, beside its prediction."""
    groups = len(team(0).players({"left": trees, "right": trees}, SAMPLES))
    seconds("level", 1, trees, 0.0)  # the first call of a model is slow
    found = []
    for share in steps:
        sampled = seconds("level", turns, trees, 0.0) / turns  # again, because load changes
        step = share * sampled
        for kind in ("level", "ours", "served"):
            expected = predicted(kind, turns, sampled, step, groups)
            taken = seconds(kind, turns, trees, step)
            found.append(
                {
                    "step, levels": share,
                    "kind": kind,
                    "predicted s": round(expected, 1),
                    "s": round(taken, 1),
                }
            )
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.cluster.tree_groups", description=__doc__)
    parser.add_argument("--steps", type=float, nargs="+", default=[0.0, 0.5, 1.0, 2.0])
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--trees", type=int, default=16)
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    found = rows(given.turns, given.trees, given.steps)
    if given.json:
        print(json.dumps(found))
        return 0
    names = list(found[0])
    lines = [names, ["---"] * len(names), *([str(each[name]) for name in names] for each in found)]
    print("\n".join(f"| {' | '.join(cells)} |" for cells in lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
