"""Benchmark of the training time to a given held-out reward, against `comlrl`.

All sides (the peer in float32, mlrl in float32 and, on CPUs that have such instructions, under
bfloat16 autocast) train the same two models on the same prompts with the published reward, as in
`magrpo_step`, but answers may end. Sides take turns, step by step, and each round starts with
another side. After every step they answer held-out prompts; that time is not counted. A side is
done when the mean of its last three evaluations reaches the threshold. The picture is
`docs/images/story_curve.svg`.

    python -m benchmarks.perf.story_curve [--steps 20] [--seeds 1] [--threshold 0.75]
"""

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from benchmarks.perf.arguments import parse_arguments
from benchmarks.perf.common import (
    PICTURES,
    Worker,
    cpu_precisions,
    hardware,
    peers_python,
    print_figure,
)
from benchmarks.perf.magrpo_step import AS_THE_PEER
from benchmarks.perf.versus import model_folder, story_prompts
from benchmarks.perf.work import Work, padded_folder
from benchmarks.shared.curves import save_figure

__all__ = ["arrival", "draw", "main"]

LOOKS = 3
PEER = "comlrl"
COLOURS = {"ours, float32": "#1b6ca8", "ours, bf16": "#6bb0e0", PEER: "#d1793b"}
Curve = list[tuple[float, float]]  # seconds of training, and the held-out reward


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, draw, and print the result as one JSON line."""
    arguments = _parse(argv)
    before = hardware()
    with _folder(smoke=arguments.smoke) as folder:
        prompts = story_prompts(2 * arguments.tasks)
        work = Work(
            folder,
            prompts[: arguments.tasks],
            max_new_tokens=arguments.max_new_tokens,
            learning_rate=arguments.learning_rate,
        )
        curves = {
            seed: _race(work, prompts[arguments.tasks :], seed, arguments)
            for seed in range(arguments.seeds)
        }
    draw(curves, arguments.threshold, arguments.picture)
    arrivals = {
        side: [arrival(race[side], arguments.threshold) for race in curves.values()]
        for side in curves[0]
    }
    print_figure(
        {
            "figure": "story_curve",
            "title": f"MAGRPO on mlrl/story-v1, SmolLM2-135M, {arguments.tasks} tasks a step, "
            f"until held-out prompts earn {arguments.threshold:g}",
            "work": {**work.facts(), "steps": arguments.steps, "threshold": arguments.threshold},
            "rows": _rows(arrivals),
            "measured": {str(seed): race for seed, race in curves.items()},
            "hardware": before,
        }
    )


def arrival(curve: Curve, threshold: float) -> float | None:
    """Return the seconds of training when the last evaluations reach the threshold, or None."""
    for end in range(LOOKS, len(curve) + 1):
        if fmean(reward for _, reward in curve[end - LOOKS : end]) >= threshold:
            return curve[end - 1][0]
    return None


def draw(curves: Mapping[int, Mapping[str, Curve]], threshold: float, picture: Path) -> None:
    """Draw the held-out reward over seconds of training."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    for seed, race in curves.items():
        for side, curve in race.items():
            seconds, rewards = zip(*curve, strict=True)
            label = side if seed == min(curves) else None
            axes.plot(seconds, rewards, color=COLOURS[side], label=label, linewidth=1.2)
    axes.axhline(threshold, color="0.7", linestyle="--")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("held-out reward")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    save_figure(figure, picture)


def _race(
    work: Work, held_out: Sequence[Mapping[str, str]], seed: int, arguments: argparse.Namespace
) -> dict[str, Curve]:
    """Run all sides step by step in alternation until each is done or has no steps left."""
    shared = {**work.as_setup(), "held_out": held_out, "samples": arguments.samples}
    ours = {**shared, "learner": "magrpo", "options": {**AS_THE_PEER, "seed": seed}}
    setups = {
        f"ours, {precision}": {**ours, "precision": precision} for precision in arguments.precisions
    }
    setups[PEER] = {**shared, "dtype": "float32"}
    with contextlib.ExitStack() as stack:
        workers = {
            side: stack.enter_context(
                Worker(
                    peers_python() if side == PEER else sys.executable,
                    "benchmarks.perf.story_side",
                    setup,
                )
            )
            for side, setup in setups.items()
        }
        curves: dict[str, Curve] = {
            side: [(0.0, worker.round(seed, train="no")["reward"])]
            for side, worker in workers.items()
        }
        names = list(workers)
        for step in range(arguments.steps):
            first = step % len(names)
            for side in names[first:] + names[:first]:
                if arrival(curves[side], arguments.threshold) is None:
                    found = workers[side].round(1000 * seed + step)
                    curves[side].append((curves[side][-1][0] + found["seconds"], found["reward"]))
                    print(f"{side}, seed {seed}, step {step}: {found}", file=sys.stderr, flush=True)
    return curves


def _rows(arrivals: Mapping[str, Sequence[float | None]]) -> list[dict[str, object]]:
    return [
        _row(f"seconds of training, seed {seed}, {side}", one, other)
        for side in arrivals
        if side != PEER
        for seed, (one, other) in enumerate(zip(arrivals[side], arrivals[PEER], strict=True))
    ]


def _row(what: str, ours: float | None, theirs: float | None) -> dict[str, object]:
    row: dict[str, object] = {"what": what, "unit": "s", "peer_name": "comlrl 1.4.3, float32"}
    row["ours"] = "never" if ours is None else round(ours, 1)
    row["peer"] = "never" if theirs is None else round(theirs, 1)
    return row if ours is None or theirs is None else {**row, "ratio": round(theirs / ours, 2)}


@contextlib.contextmanager
def _folder(*, smoke: bool) -> Iterator[str]:
    """Yield a temporary folder with SmolLM2, whose answers may end, or a tiny random model."""
    if smoke:
        with model_folder(smoke=True) as folder:
            yield folder
        return
    from mlrl_envs.models import smollm2_folder

    with tempfile.TemporaryDirectory() as target:
        yield padded_folder(smollm2_folder(), Path(target))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    return parse_arguments(
        argv,
        "Wall-clock time to the same held-out reward.",
        steps={"type": int, "default": 20, "help": "largest number of steps per side"},
        seeds=1,
        tasks={"type": int, "default": 4, "help": "prompts per step, and held-out prompts"},
        samples={"type": int, "default": 4, "help": "answers per held-out prompt"},
        max_new_tokens=64,
        learning_rate=1e-4,
        threshold=0.75,
        precisions=cpu_precisions(),
        picture=PICTURES / "story_curve.svg",
        smoke=False,
    )


if __name__ == "__main__":
    main()
