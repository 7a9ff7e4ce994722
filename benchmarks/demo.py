"""Demo: two small language models learn to write a story together, then write code.

    python -m benchmarks.demo [--run-dir runs/demo] [--resume]

MAGRPO trains two copies of SmolLM2-135M-Instruct, one for each agent of `mlrl/story-v1`, on ten
prompts. Ten other prompts are held out and evaluated before, during and after training. Then both
models play a few tasks of `mlrl/humaneval-v1` for two turns. All results are written to the run
directory, with an HTML report. The exit status is 1 if the held-out return has not risen by half.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Threads that spin while they wait make processes on few cores ten times slower; about 50 µs of
# spinning cost nothing. The variable is read when torch is imported.
os.environ.setdefault("GOMP_SPINCOUNT", "20000")

import mlrl_envs
import mlrl_learners
from mlrl_learners.errors import RunDirError
from mlrl_learners.loggers import JsonlFile, read_records
from mlrl_learners.report import write_report
from mlrl_learners.training.checkpoint import latest_checkpoint

__all__ = ["DemoConfig", "main"]

STORY, CODE = "mlrl/story-v1", "mlrl/humaneval-v1"
CHECKPOINT_EVERY = 3  # iterations; each takes up to a minute


@dataclass(frozen=True)
class DemoConfig:
    """Settings of the demo; it takes less than fifteen minutes on two cores.

    Attributes:
        model: Initial model of both agents.
        reward: Reward of the story; `"judged"` also reads the texts with SmolLM2-135M-Instruct.
        iterations: Number of training updates.
        tasks_per_iteration: Prompts per update.
        group_size: Completions per agent and prompt.
        max_new_tokens: Longest completion in tokens; it also limits the length ratio of the story.
        lr: Learning rate.
        precision: `"bf16"` computes under autocast over float32 weights.
        eval_every: Iterations between evaluations on the held-out prompts.
        eval_samples: Episodes per held-out prompt.
        code_tasks: Number of HumanEval tasks.
        code_tokens: Longest completion on HumanEval, in tokens.
        seed: Random seed.
        least_ratio: Smallest ratio of the last to the first held-out return for exit status 0.
    """

    model: str = "smollm2-135m-instruct"
    reward: str = "judged"
    iterations: int = 18
    tasks_per_iteration: int = 4
    group_size: int = 6
    max_new_tokens: int = 72
    lr: float = 8e-5
    precision: str = "bf16"
    eval_every: int = 9
    eval_samples: int = 2
    code_tasks: int = 6
    code_tokens: int = 192
    seed: int = 0
    least_ratio: float = 1.5


def main(argv: Sequence[str] | None = None, config: DemoConfig | None = None) -> int:
    """Run the demo and return the exit status."""
    arguments = _parse(argv)
    run_dir = Path(arguments.run_dir)
    config = config or DemoConfig()
    started = time.perf_counter()
    try:
        finished = train(config, run_dir, resume=arguments.resume)
    except RunDirError as error:
        _say(f"error: {error}")
        return 2
    if not finished:
        _say(f"Stopped. Go on with: python -m benchmarks.demo --run-dir {run_dir} --resume")
        return 130
    play_code(config, run_dir)
    report = write_report(run_dir)
    held_out = held_out_returns(run_dir)
    risen = print_figures(held_out, config)
    _say(f"{time.perf_counter() - started:.0f} s. Report: {report.resolve().as_uri()}")
    return 0 if risen else 1


def train(config: DemoConfig, run_dir: Path, *, resume: bool) -> bool:
    """Train the two writers; return whether training finished."""
    _say(f"1/3 Two agents, each a {config.model}, learn {STORY} ({config.iterations} iterations).")
    agents = mlrl_envs.make(STORY).possible_agents
    learner = mlrl_learners.make(
        "magrpo",
        agents=agents,
        model=config.model,
        # Every combination is scored, which lowers the variance.
        group={"size": config.group_size, "joint_mode": "cross"},
        # All tokens have equal weight, so that short answers are not favoured.
        loss={"kind": "dr_grpo"},
        sampling={"max_new_tokens": config.max_new_tokens},
        optimizer={"lr": config.lr},
        compute={"precision": config.precision},
        seed=config.seed,
    )
    result = mlrl_learners.train(
        env_id=STORY,
        env_options={"reward": config.reward},
        learner=learner,
        iterations=config.iterations,
        run_dir=run_dir,
        tasks_per_iteration=config.tasks_per_iteration,
        seed=config.seed,
        checkpoint_every=CHECKPOINT_EVERY,
        keep_checkpoints=1,
        eval_every=config.eval_every,
        eval_samples=config.eval_samples,
        resume=resume,
    )
    return not result.interrupted


def play_code(config: DemoConfig, run_dir: Path) -> None:
    """Play HumanEval with the trained models and add the episodes to the run."""
    _say(f"2/3 The same two play {CODE}: {config.code_tasks} tasks, two turns, real tests.")
    checkpoint = latest_checkpoint(run_dir)
    if checkpoint is None:
        raise RunDirError(f"{str(run_dir)!r} holds no checkpoint")
    writers = mlrl_envs.make(STORY).possible_agents
    programmers = mlrl_envs.make(CODE).possible_agents
    model: Mapping[str, Path] = {
        programmer: checkpoint / "learner" / writer
        for programmer, writer in zip(programmers, writers, strict=True)
    }
    actor = mlrl_learners.make(
        "magrpo",
        agents=programmers,
        model=model,
        sampling={"max_new_tokens": config.code_tokens},
        compute={"precision": config.precision},
    )
    result = mlrl_learners.evaluate(
        env_id=CODE,
        actor=actor,
        env_options={"max_turns": 2, "feedback": "diagnostics"},
        tasks=config.code_tasks,
        seed=config.seed,
        explore=False,
        progress=True,
    )
    evaluations = JsonlFile(run_dir / "evaluations.jsonl")
    evaluations.keep(
        lambda record: record["env_id"] != CODE
    )  # left by an earlier part of a resumed run
    evaluations.append({"iteration": config.iterations, **result.as_dict()})
    solved = sum(episode.solved for episode in result.episodes)
    _say(f"    mean return {result.mean_return:.3f}, {solved} of {len(result.episodes)} solved")


def held_out_returns(run_dir: Path) -> list[dict[str, Any]]:
    """Return the evaluations on the held-out story prompts, in order."""
    records = read_records(run_dir / "evaluations.jsonl")
    return [record for record in records if record["env_id"] == STORY]


def print_figures(held_out: Sequence[Mapping[str, Any]], config: DemoConfig) -> bool:
    """Print the held-out returns; return whether they have risen enough."""
    prompts = mlrl_envs.make(STORY, split="eval").num_tasks
    _say(
        f"3/3 Held-out return ({prompts} prompts x {config.eval_samples} episodes, "
        f"training seed {config.seed}, evaluation seed {held_out[0]['seed']}):"
    )
    for record in held_out:
        interval = record["interval"]
        bounds = f"[{interval[0]:.3f}, {interval[1]:.3f}]" if isinstance(interval, list) else ""
        _say(f"    after {record['iteration']:>3} iterations: {_mean(record):.3f}  95 % {bounds}")
    first, last = _mean(held_out[0]), _mean(held_out[-1])
    risen = last >= config.least_ratio * first and (last > first or config.least_ratio <= 1)
    times = f"{last / first:.2f} x" if first > 0 else "from nothing"
    verdict = "risen as expected" if risen else f"NOT the {config.least_ratio} x that was expected"
    _say(f"    {first:.3f} -> {last:.3f}, {times}: {verdict}")
    return risen


def _mean(record: Mapping[str, object]) -> float:
    return float(str(record["mean_return"]))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.demo", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--run-dir", default="runs/demo", help="folder of the run")
    parser.add_argument("--resume", action="store_true", help="continue an existing run")
    return parser.parse_args(argv)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
