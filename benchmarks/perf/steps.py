"""Benchmark of an environment step without running programs, against an empty PettingZoo loop.

Every environment plays its split `sample` with honest answers (reference actions if the data has
them). No joint action is played twice, by any side, because environments cache what they read.
Programs are assembled and parsed but not run: a replacement of the sandbox fails them at once. The
other side is a PettingZoo environment that returns the same texts. Processor time is measured, so
that other load matters less.

    python -m benchmarks.perf.steps [--rounds 7] [--steps 64]
"""

import copy
import functools
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pettingzoo import ParallelEnv

import mlrl_envs
from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    Measurement,
    alternate,
    hardware,
    print_figure,
    spread,
    versions,
)
from mlrl_envs.sandbox import Outcome, Program

__all__ = ["main"]

Answers = Callable[[], list[dict[str, str]]]

STORIES = (
    (
        "The keeper of the lighthouse found a bottle on the rocks one morning. Inside it lay a "
        "letter from a girl on an island that no map showed, who asked for seeds, because her "
        "garden had drowned in the storm. He answered with a packet of beans and waited. After "
        "{days} days the sea brought another bottle, and in it the first green leaf that the "
        "island had ever sent."
    ),
    (
        "My grandmother kept a clock which she never wound, and yet it struck every evening when "
        "my grandfather came home from the mill. When he died, the house was silent for {days} "
        "days. Then it rang once more, at the old hour, while we all sat at the table. Nobody "
        "spoke. She rose slowly, opened the door, and set out his chair and a bowl of warm soup."
    ),
)


class FailingRunner:
    """Replacement of the sandbox that runs no program and fails all."""

    def run_many(self, programs: Sequence[Program]) -> list[Outcome]:
        """Return a failure for each program."""
        return [Outcome("failed", 0, 1) for _ in programs]


class BareEnv(ParallelEnv):  # type: ignore[misc]  # PettingZoo is untyped
    """Environment that returns its actions, the minimum that a PettingZoo environment does."""

    def __init__(self, observations: Mapping[str, str], infos: Mapping[str, Any]) -> None:
        self.possible_agents = self.agents = list(observations)
        self.texts, self.infos = dict(observations), dict(infos)

    def step(self, actions: Mapping[str, str]) -> tuple[dict[str, Any], ...]:
        """Return the same texts and end the episode."""
        agents = list(actions)
        return (
            {agent: self.texts[agent] for agent in agents},
            dict.fromkeys(agents, 0.0),
            dict.fromkeys(agents, True),
            dict.fromkeys(agents, False),
            {agent: dict(self.infos[agent]) for agent in agents},
        )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the result as one JSON line."""
    arguments = parse_arguments(
        argv,
        "Processor time of a step without running programs.",
        rounds=7,
        steps={"type": int, "default": 64, "help": "steps per round, and the batch size"},
        ids={"nargs": "*", "help": "only these environments"},
    )
    before = hardware()
    rows: list[dict[str, object]] = []
    measured: dict[str, object] = {}
    for env_id in arguments.ids or [name for name in mlrl_envs.registry if name[:5] == "mlrl/"]:
        work = _sides(env_id, arguments.steps)
        times = alternate(work, rounds=arguments.rounds, warmup=2)
        measured[env_id] = times
        rows += _rows(env_id, times, arguments.steps)
    print_figure(
        {
            "figure": "steps",
            "title": "Processor time of a step without running programs",
            "work": {"split": "sample", "steps": arguments.steps, "rounds": arguments.rounds},
            "rows": rows,
            "measured": measured,
            "versions": versions(["mlrl", "pettingzoo", "gymnasium", "numpy"]),
            "hardware": before,
        }
    )


def _sides(env_id: str, steps: int) -> dict[str, Any]:
    """Return the work of each side, from a seed to a measurement."""
    env: Any = mlrl_envs.make(env_id, split="sample", sandbox=FailingRunner())
    observations, infos = env.reset(seed=0, options={"task_index": 0})
    answers = functools.partial(_answers, env, steps, itertools.count())
    bare = BareEnv(observations, infos)
    return {
        "one by one": functools.partial(_one_by_one, env, answers),
        "as a batch": functools.partial(_as_a_batch, env, answers),
        "bare": functools.partial(_one_by_one, bare, answers),
    }


def _answers(env: Any, steps: int, numbers: Iterator[int]) -> list[dict[str, str]]:  # noqa: ANN401
    """Return one joint action per step, all different, so that caches do not help.

    Args:
        env: The environment.
        steps: Number of joint actions.
        numbers: Source of numbers that make the texts different. All sides share it, because texts
            that one side has played are in the caches of the process.
    """
    agents = env.possible_agents
    if reference := env.reference_actions():
        return [
            {agent: f"{text}\n# {number}" for agent, text in reference.items()}
            for number in itertools.islice(numbers, steps)
        ]
    return [
        {
            agent: STORIES[place % len(STORIES)].format(days=len(agents) * number + place)
            for place, agent in enumerate(agents)
        }
        for number in itertools.islice(numbers, steps)
    ]


def _one_by_one(env: Any, answers: Answers, _seed: int) -> Measurement:  # noqa: ANN401
    actions = answers()
    forks = [copy.deepcopy(env) for _ in actions]
    start = time.process_time()
    for fork, action in zip(forks, actions, strict=True):
        fork.step(action)
    return {"seconds": time.process_time() - start}


def _as_a_batch(env: Any, answers: Answers, _seed: int) -> Measurement:  # noqa: ANN401
    actions = answers()
    forks = [copy.deepcopy(env) for _ in actions]
    start = time.process_time()
    mlrl_envs.step_many(forks, actions)
    return {"seconds": time.process_time() - start}


def _rows(
    env_id: str, times: Mapping[str, Sequence[Measurement]], steps: int
) -> list[dict[str, object]]:
    micros = {side: spread([m["seconds"] / steps * 1e6 for m in times[side]]) for side in times}
    return [
        {
            "what": f"{env_id}, {side}",
            "unit": "µs",
            "ours": micros[side],
            "peer": micros["bare"],
            "peer_name": "bare loop",
        }
        for side in ("one by one", "as a batch")
    ]


if __name__ == "__main__":
    main()
