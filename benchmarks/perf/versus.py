"""One training step, ours against a peer's: what the figures of whole steps share."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.perf.common import (
    Measurement,
    Worker,
    alternate,
    hardware,
    peers_python,
    print_figure,
    spread,
)
from benchmarks.perf.work import Work, endless_folder

__all__ = ["Side", "add_arguments", "compare", "model_folder", "rows", "story_prompts"]

# What a row says of a step: unit, from a measurement, and whether less is better.
QUANTITIES: dict[str, tuple[str, Callable[[Measurement], float], bool]] = {
    "seconds a step": ("s", lambda m: m["seconds"], True),
    "sampled tokens a second, whole step": (
        "tokens/s",
        lambda m: m["tokens"] / m["seconds"],
        False,
    ),
    "CPU seconds a step, all cores": ("s", lambda m: m["cpu_seconds"], True),
    "peak resident memory": ("MiB", lambda m: m["peak_rss_mib"], True),
}


class Side:
    """A worker's module, what it is sent beside the work, and the ways it is asked to work in.

    Args:
        python: The interpreter.
        module: The worker.
        extra: Sent with the work.
        ways: By the name of each way, what a round is told.
    """

    def __init__(
        self,
        python: str,
        module: str,
        extra: Mapping[str, object],
        ways: Mapping[str, Mapping[str, str]],
    ) -> None:
        self.python, self.module = python, f"benchmarks.perf.{module}"
        self.extra, self.ways = extra, ways

    @classmethod
    def ours(cls, learner: str, options: Mapping[str, object], precisions: Sequence[str]) -> "Side":
        """Return our side, in one process for all precisions."""
        ways = {f"ours, {precision}": {"precision": precision} for precision in precisions}
        return cls(sys.executable, "step_ours", {"learner": learner, "options": options}, ways)

    @classmethod
    def peer(
        cls, module: str, extra: Mapping[str, object], ways: Mapping[str, Mapping[str, str]]
    ) -> "Side":
        """Return a side that runs in the peers' interpreter."""
        return cls(peers_python(), module, extra, ways)


def compare(
    figure: str,
    title: str,
    work: Work,
    sides: Sequence[Side],
    pairs: Sequence[tuple[str, str]],
    *,
    peer_name: str,
    rounds: int,
    warmup: int = 1,
) -> None:
    """Measure the sides in turns and print the figure.

    Args:
        figure: Its name.
        title: Says what the work is, for the table.
        work: What every side does once a round.
        sides: Who does it.
        pairs: Which way of ours stands beside which of the peer's.
        peer_name: The peer, with its version.
        rounds: Measured turns a side.
        warmup: Turns a side before those; where one takes many minutes, the first of a process,
            which costs each side some seconds more, is as good.
    """
    before = hardware()
    measured, about = _measure(work, sides, rounds=rounds, warmup=warmup)
    print_figure(
        {
            "figure": figure,
            "title": title,
            "work": {**work.facts(), "rounds": rounds, "warmup": warmup},
            "rows": [row for pair in pairs for row in rows(measured, *pair, peer_name)],
            "measured": measured,
            "versions": about,
            "hardware": before,
        }
    )


def _measure(
    work: Work, sides: Sequence[Side], *, rounds: int, warmup: int
) -> tuple[dict[str, list[Measurement]], list[dict[str, float]]]:
    """Return what each way took, and facts about the sides.

    Where a side has one turn only, nothing of another is held in memory meanwhile.
    """
    measured: dict[str, list[Measurement]] = {}
    about = []
    together = [sides] if rounds + warmup > 1 else [[side] for side in sides]
    for group in together:
        with contextlib.ExitStack() as stack:
            workers = [
                stack.enter_context(Worker(s.python, s.module, {**work.as_setup(), **s.extra}))
                for s in group
            ]
            rounds_of = {
                name: _round(worker, how)
                for side, worker in zip(group, workers, strict=True)
                for name, how in side.ways.items()
            }
            measured |= alternate(rounds_of, rounds=rounds, warmup=warmup)
            about += [worker.about for worker in workers]
    return measured, about


def _round(worker: Worker, how: Mapping[str, str]) -> Callable[[int], Measurement]:
    return lambda seed: worker.round(seed, **how)


def rows(
    measured: Mapping[str, Sequence[Measurement]], ours: str, peer: str, peer_name: str
) -> list[dict[str, object]]:
    """Return the rows of the table: medians of both sides and their ratio."""
    made: list[dict[str, object]] = []
    way = ours.removeprefix("ours, ")
    for what, (unit, value, smaller_is_better) in QUANTITIES.items():
        one, other = (spread([value(m) for m in measured[side]]) for side in (ours, peer))
        row: dict[str, object] = {
            "what": f"{what}, {way}",
            "unit": unit,
            "ours": one,
            "peer": other,
            "peer_name": peer_name,
        }
        if one["median"] and other["median"]:  # a tiny model may not say anything
            ratio = one["median"] / other["median"]
            row["ratio"] = round(1 / ratio if smaller_is_better else ratio, 2)
        made.append(row)
    return made


def story_prompts(count: int, agents: Sequence[str] = ("setup", "story")) -> list[dict[str, str]]:
    """Return what agents read in the first tasks of the story environment."""
    import mlrl_envs

    env = mlrl_envs.make("mlrl/story-v0", split="all")
    prompts = []
    for index in range(count):
        observations, _ = env.reset(seed=0, options={"task_index": index % env.num_tasks})
        texts = list(observations.values())
        prompts.append({agent: texts[i % len(texts)] for i, agent in enumerate(agents)})
    env.close()
    return prompts


@contextlib.contextmanager
def model_folder(*, smoke: bool) -> Iterator[str]:
    """Lend a folder with SmolLM2 that never ends an answer, or with a tiny random model."""
    with tempfile.TemporaryDirectory() as folder:
        if not smoke:
            from mlrl_learners.policies.smollm2 import smollm2_folder

            yield endless_folder(smollm2_folder(), Path(folder))
            return
        from mlrl_learners.policies.tiny import tiny_model

        for part in tiny_model():
            part.save_pretrained(folder)
        yield folder


def add_arguments(parser: argparse.ArgumentParser, *, tasks: int, group_size: int) -> None:
    """Add the sizes of a step to a parser."""
    parser.add_argument("--rounds", type=int, default=3, help="measured turns a side")
    parser.add_argument("--warmup", type=int, default=1, help="turns a side thrown away before")
    parser.add_argument("--tasks", type=int, default=tasks)
    parser.add_argument("--group-size", type=int, default=group_size, help="answers a prompt")
    parser.add_argument("--max-new-tokens", type=int, default=96)
    parser.add_argument("--smoke", action="store_true", help="a tiny model: does it run at all?")
