"""Untrained and trained returns of every named workflow in one game, at equal tokens.

    python -m benchmarks.workflow_learning --runs runs/shapes
    python -m benchmarks.workflow_learning --runs runs/shapes --gather-only --publish

Two players of a stag hunt are played by one graph each, by one small Llama with random weights (as
in `benchmarks.games`), which learns by `magrpo` with `credit: team`. Answers have the same limit,
and an update has the same number of answers, so that a graph with more nodes plays fewer episodes.
All graphs start from the same weights of a seed. Finished runs are kept and interrupted runs are
resumed; `--publish` adds them to `benchmarks/workflow_learning.json`, and writes the table of all
into the documentation.
Not covered: models that can write text, see `benchmarks.workflow_shapes`.
"""

import argparse
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.curves import ROOT, conflict, held_out_returns, merged, stored_model
from benchmarks.games.model import ModelSize, save_model
from benchmarks.games.training import SFT
from benchmarks.kept_runs import finish, keep_same, shared_weights
from benchmarks.perf.table import between
from benchmarks.recipes import half_width, interval
from benchmarks.workflow_shapes import PLAIN, most_answers
from mlrl_envs.games.base import PLAYERS
from mlrl_envs.workflows import SHAPES
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import METRICS_FILE

__all__ = ["main", "rows", "run_config", "table"]

RESULTS = Path(__file__).with_name("workflow_learning.json")
PAGE = ROOT / "docs" / "workflows.md"
BEGIN, END = "<!-- workflow learning: begin -->", "<!-- workflow learning: end -->"
ENV_ID = "mlrl/matrix-v0"
ENV: Mapping[str, Any] = {"matrix": "stag-hunt", "rounds": 1}
NAMES = (PLAIN, *SHAPES)
SIZE = ModelSize(hidden_size=48)
SFT_UPDATES, UPDATES, ANSWERS, EPISODES = 120, 12, 212, 64
MOVES, VERDICTS, PLAYED = ("<move>stag</move>", "<move>hare</move>"), ("APPROVED", "REVISE"), 20
SHARED: Mapping[str, Any] = {
    "team": {"share_weights": True},
    "sampling": {"max_new_tokens": 4, "temperature": 1.0, "top_p": 1.0},
    "compute": {"max_rows": 256, "micro_batch_tokens": 16384},
}
LEARNER: Mapping[str, Any] = {
    "baseline": {"group_by": "agent_turn"},
    "credit": {"kind": "team"},
    "optimizer": {"lr": 1e-3, "schedule": "linear"},
}
# The same text of all prompts is not read, which saves half of the computation.
UNREAD = (r"Two players choose .*? gets 3\.", r"Answer with one of them: <move>\.\.\.</move>")


def env_options(shape: str) -> dict[str, Any]:
    """Return the options of the game, with the workflow of a shape."""
    return dict(ENV) if shape == PLAIN else {**ENV, "workflow": shape}


def run_config(shape: str, seed: int, model: Path) -> RunConfig:
    """Return the configuration of a run.

    Args:
        shape: A name of `NAMES`.
        seed: Seed of all sampling.
        model: Folder of the weights from which all nodes start.
    """
    rollouts = ANSWERS // most_answers(ENV_ID, env_options(shape))
    options = merge_options(SHARED, LEARNER, {"group": {"size": 1, "rollouts": rollouts}})
    train = TrainConfig(
        iterations=UPDATES,
        tasks_per_iteration=1,
        seed=seed,
        checkpoint_every=UPDATES // 2,
        keep_checkpoints=1,
        eval_every=UPDATES,
        eval_tasks=EPISODES,
    )
    env = EnvConfig(ENV_ID, {"split": "train", **env_options(shape)})
    return RunConfig(env, LearnerConfig("magrpo", str(model), options), train=train)


def rows(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each shape: returns before and after training, and what each gained.

    `learnt` and `gain` are means over seeds of paired differences, of after and before and of the
    trained returns of a shape and of `plain`; `*_half_width` is half of the 95 % interval of
    Student's t, None for a single seed.

    Args:
        records: Records of finished runs, with `shape`, `seed`, `answers`, `tokens`, `before` and
            `after`.
    """
    plain = {each["seed"]: each["after"] for each in records if each["shape"] == PLAIN}
    found = []
    for shape in dict.fromkeys(each["shape"] for each in records):
        mine = [each for each in records if each["shape"] == shape]
        learnt = [each["after"] - each["before"] for each in mine]
        gains = [each["after"] - plain[each["seed"]] for each in mine if each["seed"] in plain]
        found.append(
            {
                "shape": shape,
                "seeds": [each["seed"] for each in mine],
                **{name: round(mean([each[name] for each in mine]), 4) for name in FIGURES},
                "trained": [each["after"] for each in mine],
                "learnt": round(mean(learnt), 4),
                "learnt_half_width": half_width(learnt),
                "gain": round(mean(gains), 4) if gains else None,
                "gain_half_width": half_width(gains),
            }
        )
    return found


FIGURES = ("answers", "tokens", "before", "after")


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| workflow | answers | tokens | untrained → trained | by seed | change | over `plain` |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        by_seed = ", ".join(f"{value:.2f}" for value in row["trained"])
        gain = "" if row["shape"] == PLAIN else interval(row["gain"], row["gain_half_width"])
        lines.append(
            f"| `{row['shape']}` | {row['answers']:.0f} | {row['tokens']:,.0f} "
            f"| {row['before']:.2f} → {row['after']:.2f} | {by_seed} "
            f"| {interval(row['learnt'], row['learnt_half_width'])} | {gain} |"
        )
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Train what is missing, print the table, and publish it if asked."""
    parser = argparse.ArgumentParser(prog="benchmarks.workflow_learning", description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/shapes"))
    parser.add_argument("--gather-only", action="store_true", help="do not train")
    parser.add_argument("--publish", action="store_true", help="write the results and the table")
    given = parser.parse_args(argv)
    asked = [(shape, seed) for seed in given.seeds for shape in given.shapes]
    if not given.gather_only:
        for shape, seed in asked:
            if not _train(shape, seed, given.runs):
                print("interrupted: the same command continues", file=sys.stderr)
                return 130
    by_shape = sorted(asked, key=lambda each: NAMES.index(each[0]))
    records = []
    for shape, seed in by_shape:
        try:
            records.append(_record(shape, seed, given.runs))
        except RunDirError as error:
            print(f"left out: {shape}, seed {seed}: {error}", file=sys.stderr)
    print(table(rows(records)))
    is_published = not given.publish or _publish(records)
    return 0 if is_published and len(records) == len(asked) else 1


def _publish(records: Sequence[Mapping[str, Any]]) -> bool:
    """Add records to the results, and write the table of all of them into the page.

    Returns:
        False, and nothing is written, without records or if results would be lost.
    """
    stored = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    work = {"env": ENV_ID, "env_options": dict(ENV), "updates": UPDATES, "episodes": EPISODES}
    if reason := conflict(stored, work, records, "shape"):
        print(f"{str(RESULTS)!r} stays: {reason}", file=sys.stderr)
        return False
    runs = [run for run in merged(stored, records, "shape") if run["shape"] in NAMES]
    runs.sort(key=lambda run: (NAMES.index(run["shape"]), run["seed"]))
    found = rows(runs)
    text = json.dumps({"work": work, "rows": found, "runs": runs}, indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(page, BEGIN, END, table(found)), encoding="utf-8")
    return True


def _train(shape: str, seed: int, runs: Path) -> bool:
    """Train a shape from the weights of a seed; return whether it is finished."""
    model = _model(seed, runs)
    return model is not None and finish(run_config(shape, seed, model), runs / f"{shape}-{seed}")


def _model(seed: int, runs: Path) -> Path | None:
    """Return the weights of a seed that imitate random moves; None if it was interrupted."""
    folder, play = runs / f"model-{seed}", runs / "play.jsonl"
    shapes = {shape: env_options(shape) for shape in NAMES}
    played = {"env": ENV_ID, "shapes": shapes, "episodes": PLAYED, "answers": [*MOVES, *VERDICTS]}
    runs.mkdir(parents=True, exist_ok=True)
    keep_same(runs / "made.json", {**played, "size": asdict(SIZE), "unread": UNREAD})
    if not (folder / "config.json").exists():
        partial = folder.with_suffix(".partial")
        read = _random_play(play)
        save_model(partial, read, SIZE, seed=seed, unread=UNREAD)
        partial.rename(folder)
    env = {"split": "train", **ENV}
    options = merge_options(SHARED, SFT, {"examples": {"episodes": str(play)}})
    train = TrainConfig(SFT_UPDATES, seed=seed, checkpoint_every=SFT_UPDATES, keep_checkpoints=1)
    learner = LearnerConfig("sft", str(folder), options)
    run_dir = runs / f"sft-{seed}"
    if not finish(RunConfig(EnvConfig(ENV_ID, env), learner, train=train), run_dir):
        return None
    return shared_weights(run_dir, SFT_UPDATES)


def _random_play(file: Path) -> list[str]:
    """Write random moves and verdicts of all nodes of all shapes; return all that is read.

    Every answer is an episode of `player_0`, because nodes share one policy.
    """
    draw = random.Random(0)  # noqa: S311 - reproducible on purpose
    lines, read = [], [*MOVES, *VERDICTS]
    for shape in NAMES:
        env: Any = mlrl_envs.make(ENV_ID, **env_options(shape))
        for episode in range(PLAYED):
            observations, _ = env.reset(seed=episode)
            while env.agents:
                actions = {node: draw.choice(_answers(node)) for node in env.acting}
                for node, action in actions.items():
                    read.append(observations[node])
                    turn = {"observations": observations[node], "actions": action}
                    shown = {name: {PLAYERS[0]: text} for name, text in turn.items()}
                    ends = {"finish_reasons": {PLAYERS[0]: "stop"}}
                    lines.append(json.dumps({"return": 0.0, "turns": [{**shown, **ends}]}))
                observations, *_ = env.step(actions)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read


def _answers(node: str) -> tuple[str, ...]:
    return VERDICTS if node.endswith("critic") else MOVES


def _record(shape: str, seed: int, runs: Path) -> dict[str, Any]:
    """Return the figures of a finished run.

    Raises:
        RunDirError: As `held_out_returns` does.
    """
    run_dir = runs / f"{shape}-{seed}"
    config = run_config(shape, seed, Path(stored_model(run_dir) or ""))
    held_out = held_out_returns(config, run_dir)
    metrics = read_records(run_dir / METRICS_FILE)
    return {
        "shape": shape,
        "seed": seed,
        "answers": most_answers(ENV_ID, env_options(shape)),
        "tokens": sum(round(float(str(each["train/tokens"]))) for each in metrics),
        "before": round(held_out[0], 4),
        "after": round(held_out[UPDATES], 4),
    }


if __name__ == "__main__":
    raise SystemExit(main())
