"""Untrained and trained returns of every named workflow in two games, at equal tokens.

    python -m benchmarks.workflows.learning --runs runs/shapes
    python -m benchmarks.workflows.learning --games math --runs runs/shapes --gather-only --publish

Two agents of a stag hunt, or of equations with one unknown, are played by one graph each. All nodes
are one small Llama with random weights (as in `benchmarks.games`), which imitates scripted answers
and then learns by `magrpo` with `credit: team`. Answers have the same limit, and an update has the
same number of answers, so that a graph with more nodes plays fewer episodes. All graphs start from
the same weights of a seed. Finished runs are kept and interrupted runs are resumed; `--publish`
adds them to `benchmarks/workflows/learning.json`, and writes the tables of all into the
documentation.
Not covered: large models, see `benchmarks.workflows.shapes`.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.games.model import save_model
from benchmarks.games.play import texts_of
from benchmarks.games.training import SFT
from benchmarks.perf.table import between
from benchmarks.shared.curves import ROOT, conflict, held_out_returns, merged, stored_model
from benchmarks.shared.intervals import half_width, interval
from benchmarks.shared.kept_runs import finish, keep_same, shared_weights
from benchmarks.workflows.games import GAMES, WorkflowGame
from benchmarks.workflows.shapes import PLAIN
from mlrl_envs.workflows import SHAPES
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import EnvConfig, LearnerConfig, RunConfig, TrainConfig
from mlrl_learners.errors import RunDirError
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import read_records
from mlrl_learners.runs.files import METRICS_FILE

__all__ = ["NAMES", "main", "rows", "run_config", "table"]

RESULTS = Path(__file__).with_name("learning.json")
PAGE = ROOT / "docs" / "workflows.md"
NAMES = (PLAIN, *SHAPES)
SHARED: Mapping[str, Any] = {
    "team": {"share_weights": True},
    "sampling": {"temperature": 1.0, "top_p": 1.0},
    "compute": {"max_rows": 256, "micro_batch_tokens": 16384},
}
# What the play, the model and imitation depend on.
MADE = (
    *("env_id", "env", "imitated", "shapes", "answers_of", "played", "extra"),
    *("unread", "digits", "size"),
)
LEARNER: Mapping[str, Any] = {
    "baseline": {"group_by": "agent_turn"},
    "credit": {"kind": "team"},
    "optimizer": {"schedule": "linear"},
}


def run_config(game: WorkflowGame, shape: str, seed: int, model: Path) -> RunConfig:
    """Return the configuration of a run.

    Args:
        game: What is learnt.
        shape: A name of `NAMES`.
        seed: Seed of all sampling.
        model: Folder of the weights from which all nodes start.
    """
    tasks, rollouts = game.sizes(shape)
    own = {"group": {"size": 1, "rollouts": rollouts}, "optimizer": {"lr": game.lr}}
    train = TrainConfig(
        iterations=game.updates,
        tasks_per_iteration=tasks,
        seed=seed,
        checkpoint_every=max(1, game.updates // 2),
        keep_checkpoints=1,
        eval_every=game.updates,
        eval_tasks=game.episodes,
    )
    env = EnvConfig(game.env_id, {"split": "train", **game.options(shape)})
    options = merge_options(SHARED, _limit(game), LEARNER, own)
    return RunConfig(env, LearnerConfig("magrpo", str(model), options), train=train)


def _limit(game: WorkflowGame) -> dict[str, Any]:
    return {"sampling": {"max_new_tokens": game.max_new_tokens}}


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
    """Train what is missing, print the tables, and publish them if asked."""
    parser = argparse.ArgumentParser(prog="benchmarks.workflows.learning", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument("--shapes", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("runs/shapes"))
    parser.add_argument("--gather-only", action="store_true", help="do not train")
    parser.add_argument("--publish", action="store_true", help="write the results and the tables")
    given = parser.parse_args(argv)
    asked = [(shape, seed) for seed in given.seeds for shape in given.shapes]
    is_complete = True
    for name in given.games:
        runs = given.runs / name
        if not given.gather_only and not all(_train(name, *each, runs) for each in asked):
            print("interrupted: the same command continues", file=sys.stderr)
            return 130
        records = _records(name, asked, runs)
        print(f"{name}\n\n{table(rows(records))}\n")
        is_published = not given.publish or _publish(name, records)
        is_complete = is_complete and is_published and len(records) == len(asked)
    return 0 if is_complete else 1


def _records(name: str, asked: Sequence[tuple[str, int]], runs: Path) -> list[dict[str, Any]]:
    """Return the records of the finished runs of a game, and print which others are left out."""
    records = []
    for shape, seed in sorted(asked, key=lambda each: NAMES.index(each[0])):
        try:
            records.append(_record(GAMES[name], shape, seed, runs))
        except RunDirError as error:
            print(f"left out: {name}, {shape}, seed {seed}: {error}", file=sys.stderr)
    return records


def _publish(name: str, records: Sequence[Mapping[str, Any]]) -> bool:
    """Add records to the results of a game, and write the table of all of them into the page.

    Returns:
        False, and nothing is written, without records or if results would be lost.
    """
    game = GAMES[name]
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    stored = results.get(name, {})
    work = {
        "env": game.env_id,
        "env_options": dict(game.env),
        "updates": game.updates,
        "episodes": game.episodes,
    }
    if reason := conflict(stored, work, records, "shape"):
        print(f"{str(RESULTS)!r} stays: {reason}", file=sys.stderr)
        return False
    runs = [run for run in merged(stored, records, "shape") if run["shape"] in NAMES]
    runs.sort(key=lambda run: (NAMES.index(run["shape"]), run["seed"]))
    found = rows(runs)
    results[name] = {"work": work, "rows": found, "runs": runs}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    begin, end = (f"<!-- workflow learning, {name}: {mark} -->" for mark in ("begin", "end"))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(between(page, begin, end, table(found)), encoding="utf-8")
    return True


def _train(name: str, shape: str, seed: int, runs: Path) -> bool:
    """Train a shape from the weights of a seed; return whether it is finished."""
    game = GAMES[name]
    model = _model(game, seed, runs)
    if model is None:
        return False
    return finish(run_config(game, shape, seed, model), runs / f"{shape}-{seed}")


def _model(game: WorkflowGame, seed: int, runs: Path) -> Path | None:
    """Return the weights of a seed that imitate scripted play; None if it was interrupted."""
    folder, play = runs / f"model-{seed}", runs / "play.jsonl"
    runs.mkdir(parents=True, exist_ok=True)
    made = asdict(game) | {"shapes": NAMES, "answers_of": game.answers_of.__name__}
    keep_same(runs / "made.json", {name: made[name] for name in MADE})
    if not play.exists():
        partial = play.with_suffix(".partial")
        _write_play(game, partial)
        partial.rename(play)
    if not (folder / "config.json").exists():
        partial = folder.with_suffix(".partial")
        texts = [*game.extra, *texts_of(play)]
        save_model(partial, texts, game.size, seed=seed, unread=game.unread, digits=game.digits)
        partial.rename(folder)
    options = merge_options(SHARED, _limit(game), SFT, {"examples": {"episodes": str(play)}})
    train = TrainConfig(
        game.imitation, seed=seed, checkpoint_every=game.imitation, keep_checkpoints=1
    )
    learner = LearnerConfig("sft", str(folder), options)
    run_dir = runs / f"sft-{seed}"
    env = EnvConfig(game.env_id, {"split": "train", **game.env})
    if not finish(RunConfig(env, learner, train=train), run_dir):
        return None
    return shared_weights(run_dir, game.imitation)


def _write_play(game: WorkflowGame, file: Path) -> None:
    """Write scripted answers of all nodes of all shapes, each as an episode of `game.agent`.

    Nodes share one policy, so that it does not matter which agent of the environment imitates.
    """
    draw = random.Random(0)  # noqa: S311 - reproducible on purpose
    with file.open("w", encoding="utf-8") as lines:
        for shape in NAMES:
            envs: list[Any] = [
                mlrl_envs.make(game.env_id, split="train", **{**game.options(shape), **further})
                for further in game.imitated
            ]
            for number in range(game.played):
                for example in _episode(game, envs[number % len(envs)], number, draw):
                    lines.write(json.dumps(example) + "\n")


def _episode(game: WorkflowGame, env: Any, number: int, draw: random.Random) -> Iterator[Any]:  # noqa: ANN401
    """Yield the scripted answers of an episode; nodes read what was played before."""
    observations, _ = env.reset(seed=number)
    played: dict[str, str] = {}
    while env.agents:
        answers = game.answers_of(env, played, draw)
        for node, answer in answers.items():
            turn = {"observations": observations[node], "actions": answer.imitated}
            shown = {name: {game.agent: text} for name, text in turn.items()}
            yield {"return": 0.0, "turns": [{**shown, "finish_reasons": {game.agent: "stop"}}]}
        played |= {node: answer.played for node, answer in answers.items()}
        observations, *_ = env.step({node: played[node] for node in answers})


def _record(game: WorkflowGame, shape: str, seed: int, runs: Path) -> dict[str, Any]:
    """Return the figures of a finished run.

    Raises:
        RunDirError: As `held_out_returns` does.
    """
    run_dir = runs / f"{shape}-{seed}"
    config = run_config(game, shape, seed, Path(stored_model(run_dir) or ""))
    held_out = held_out_returns(config, run_dir)
    metrics = read_records(run_dir / METRICS_FILE)
    return {
        "shape": shape,
        "seed": seed,
        "answers": game.most_answers(shape),
        "tokens": sum(round(float(str(each["train/tokens"]))) for each in metrics),
        "before": round(held_out[0], 4),
        "after": round(held_out[game.updates], 4),
    }


if __name__ == "__main__":
    raise SystemExit(main())
