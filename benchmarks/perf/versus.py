"""Comparison of one training step with a peer: sides, rounds and table rows."""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.perf.arguments import parse_arguments
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

__all__ = [
    "Side",
    "check_lengths",
    "compare",
    "memory_row",
    "model_folder",
    "parse_step_arguments",
    "rows",
    "story_prompts",
]

# Quantities of a step: unit, function of a measurement, and whether less is better.
QUANTITIES: dict[str, tuple[str, Callable[[Measurement], float], bool]] = {
    "seconds a step": ("s", lambda m: m["seconds"], True),
    "sampled tokens a second, whole step": (
        "tokens/s",
        lambda m: m["tokens"] / m["seconds"],
        False,
    ),
    "CPU seconds a step, all cores": ("s", lambda m: m["cpu_seconds"], True),
}


class Side:
    """One side of a comparison: a worker and its variants.

    Args:
        python: Interpreter of the worker.
        module: Module of the worker.
        extra: Setup of the worker besides the work.
        ways: Options of a round, by the name of the variant.
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
        """Return the side of mlrl, with one process for all precisions."""
        ways = {f"ours, {precision}": {"precision": precision} for precision in precisions}
        return cls(sys.executable, "step_ours", {"learner": learner, "options": options}, ways)

    @classmethod
    def peer(
        cls, module: str, extra: Mapping[str, object], ways: Mapping[str, Mapping[str, str]]
    ) -> "Side":
        """Return a side that runs in the interpreter of the peers."""
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
    smoke: bool = False,
) -> None:
    """Measure the sides in alternation and print the result.

    Args:
        figure: Name of the benchmark.
        title: Description of the work, for the table.
        work: Work of a round, the same for all sides.
        sides: The sides.
        pairs: Variants of mlrl and of the peer to compare.
        peer_name: Name and version of the peer.
        rounds: Measured rounds per side.
        warmup: Unmeasured rounds per side. 0 is fine where a round takes many minutes: the first
            round of a process is only some seconds slower.
        smoke: Whether the model is a tiny one, whose answers may end.

    Raises:
        RuntimeError: If an answer ended early, so that the sides did not do the same work.
    """
    before = hardware()
    measured, about = _measure(work, sides, rounds=rounds, warmup=warmup)
    if not smoke:
        check_lengths(measured, work.max_new_tokens)
    print_figure(
        {
            "figure": figure,
            "title": title,
            "work": {**work.facts(), "rounds": rounds, "warmup": warmup},
            "rows": rows(measured, pairs, peer_name),
            "measured": measured,
            "versions": about,
            "hardware": before,
        }
    )


def _measure(
    work: Work, sides: Sequence[Side], *, rounds: int, warmup: int
) -> tuple[dict[str, list[Measurement]], list[dict[str, float]]]:
    """Return the measurements of each variant, and facts about the sides.

    With a single round, only one side is in memory at a time.
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


def check_lengths(measured: Mapping[str, Sequence[Measurement]], max_new_tokens: int) -> None:
    """Check that every sampled answer has the largest length.

    Raises:
        RuntimeError: If one is shorter; the message names the side.
    """
    for side, rounds in measured.items():
        for one in rounds:
            if one["tokens"] != one["samples"] * max_new_tokens:
                raise RuntimeError(
                    f"{side} sampled {one['tokens']:g} tokens in {one['samples']:g} answers, and "
                    f"not {max_new_tokens} in each: the sides did not do the same work"
                )


def _round(worker: Worker, how: Mapping[str, str]) -> Callable[[int], Measurement]:
    return lambda seed: worker.round(seed, **how)


def rows(
    measured: Mapping[str, Sequence[Measurement]], pairs: Sequence[tuple[str, str]], peer_name: str
) -> list[dict[str, object]]:
    """Return the rows of the table: each quantity of each pair, and the memory of the processes."""
    made = [row for pair in pairs for row in _speed_rows(measured, *pair, peer_name)]
    if all("peak_rss_mib" in one for pair in pairs for side in pair for one in measured[side]):
        made.append(memory_row(measured, pairs, peer_name))
    return made


def _speed_rows(
    measured: Mapping[str, Sequence[Measurement]], ours: str, peer: str, peer_name: str
) -> list[dict[str, object]]:
    """Return medians of both sides and their ratio."""
    made: list[dict[str, object]] = []
    for what, (unit, value, smaller_is_better) in QUANTITIES.items():
        one, other = (spread([value(m) for m in measured[side]]) for side in (ours, peer))
        row: dict[str, object] = {
            "what": f"{what}, {_way(ours)}",
            "unit": unit,
            "ours": one,
            "peer": other,
            "peer_name": peer_name,
        }
        if one["median"] and other["median"]:  # a tiny model may write nothing
            ratio = one["median"] / other["median"]
            row["ratio"] = round(1 / ratio if smaller_is_better else ratio, 2)
        made.append(row)
    return made


def memory_row(
    measured: Mapping[str, Sequence[Measurement]], pairs: Sequence[tuple[str, str]], peer_name: str
) -> dict[str, object]:
    """Return the highest resident memory of both sides.

    A process reports the peak of its whole life. Rounds and precisions that share a process are
    therefore not told apart: the row has one number for each side.
    """
    ours, peer = (
        max(one["peak_rss_mib"] for pair in pairs for one in measured[pair[place]])
        for place in (0, 1)
    )
    way = _way(pairs[0][0]) if len(pairs) == 1 else "of both precisions"
    return {
        "what": f"peak resident memory, {way}",
        "unit": "MiB",
        "ours": ours,
        "peer": peer,
        "peer_name": peer_name,
        "ratio": round(peer / ours, 2),
    }


def _way(ours: str) -> str:
    return ours.removeprefix("ours, ")


def story_prompts(count: int, agents: Sequence[str] = ("setup", "story")) -> list[dict[str, str]]:
    """Return the prompts of the first tasks of the story environment."""
    import mlrl_envs

    env = mlrl_envs.make("mlrl/story-v1", split="all")
    prompts = []
    for index in range(count):
        observations, _ = env.reset(seed=0, options={"task_index": index % env.num_tasks})
        texts = list(observations.values())
        prompts.append({agent: texts[i % len(texts)] for i, agent in enumerate(agents)})
    env.close()
    return prompts


@contextlib.contextmanager
def model_folder(*, smoke: bool) -> Iterator[str]:
    """Yield a temporary folder with a SmolLM2 that never ends an answer, or a tiny random model."""
    with tempfile.TemporaryDirectory() as folder:
        if not smoke:
            from mlrl_envs.models import smollm2_folder

            yield endless_folder(smollm2_folder(), Path(folder))
            return
        from mlrl_learners.policies.tiny import tiny_model

        for part in tiny_model():
            part.save_pretrained(folder)
        yield folder


def parse_step_arguments(
    argv: Sequence[str] | None,
    description: str,
    **options: Any,  # noqa: ANN401 - as in parse_arguments
) -> argparse.Namespace:
    """Parse the arguments of a comparison of whole steps; see `parse_arguments`."""
    common = {"rounds": 3, "warmup": 1, "max_new_tokens": 96, "smoke": False}
    return parse_arguments(argv, description, **{**common, **options})
