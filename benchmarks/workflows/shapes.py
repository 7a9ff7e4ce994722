"""Untrained returns of every named workflow on generated math problems, at equal tokens.

All nodes of a graph share one model. An episode may write `--tokens` tokens, divided equally among
the answers that its graph asks for at most, so that a graph with more nodes writes shorter answers.
`plain` is the environment without a workflow. Finished runs are kept, so that the command continues
where it was stopped; they are played again if the graph's options, the packages or the code of
`mlrl` changed. Returns of trained teams are not covered: `mlrl train` with `env.workflow`.

    python -m benchmarks.workflows.shapes --out runs/shapes
    python -m benchmarks.workflows.shapes --shapes plain debate --model tiny-random --tasks 2 --json
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
import mlrl_learners
from benchmarks.shared.curves import program
from mlrl_envs.errors import InfraError
from mlrl_envs.workflows import SHAPES
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.figures.means import mean
from mlrl_learners.loggers import JsonlFile

__all__ = ["PLAIN", "main", "most_answers", "rows", "run", "table"]

ENV_ID = "mlrl/math-v2"
PLAIN = "plain"
FIGURES = ("return", "solved", "written")


def env_options(shape: str) -> dict[str, Any]:
    """Return the options of the environment: one turn of generated problems of the first level."""
    options: dict[str, Any] = {"split": "eval", "max_turns": 1, "levels": [1]}
    return options if shape == PLAIN else {**options, "workflow": shape}


def most_answers(env_id: str, options: Mapping[str, Any]) -> int:
    """Return the most answers that an episode of an environment asks for."""
    env = mlrl_envs.make(env_id, **options)
    graph = getattr(env.family, "graph", None)  # type: ignore[attr-defined]  # of TextParallelEnv
    if graph is None:
        return len(env.possible_agents)
    return sum(len(step) for step in graph.unrolled())


def run(shape: str, *, seed: int, model: str, tokens: int, tasks: int) -> dict[str, Any]:
    """Evaluate a workflow and return its record.

    Args:
        shape: A name of `SHAPES`, or `plain`.
        seed: Seed of the episodes and of everything that is sampled.
        model: Model of all nodes.
        tokens: Most tokens that an episode writes.
        tasks: Number of tasks.

    Returns:
        The arguments, `answer_tokens` (limit of one answer), mean `return`, `solved` rate, and the
        tokens that an episode has `written` in the mean.

    Raises:
        ConfigError: If the tokens do not suffice for one token an answer.
        InfraError: If episodes failed.
    """
    options = env_options(shape)
    agents = mlrl_envs.make(ENV_ID, **options).possible_agents
    limit = tokens // most_answers(ENV_ID, options)
    actor = mlrl_learners.make(
        "magrpo",
        agents=agents,
        model=model,
        seed=seed,
        team={"share_weights": True},
        sampling={"max_new_tokens": limit},
    )
    split = options.pop("split")
    result = evaluate(
        env_id=ENV_ID, actor=actor, env_options=options, split=split, tasks=tasks, seed=seed
    )
    if result.failures:
        raise InfraError(f"{len(result.failures)} episodes of {shape} failed")
    asked = {"shape": shape, "seed": seed, "model": model, "tokens": tokens, "tasks": tasks}
    written = result.tokens / len(result.episodes)
    figures = {"return": result.mean_return, "solved": result.solved_rate, "written": written}
    return {**asked, "answer_tokens": limit, **figures}


def rows(records: Sequence[Mapping[str, Any]], shapes: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row for each shape: means over seeds, and the return of each seed.

    Args:
        records: Records of `run` with the same tokens, tasks and model.
        shapes: Names of the rows.
    """
    found = []
    for shape in shapes:
        mine = sorted((r for r in records if r["shape"] == shape), key=lambda r: int(r["seed"]))
        means = {name: mean([float(each[name]) for each in mine]) for name in FIGURES}
        by_seed = [round(float(each["return"]), 4) for each in mine]
        answers = int(mine[0]["answer_tokens"])
        found.append({"shape": shape, "answer_tokens": answers, **means, "returns": by_seed})
    return found


def table(found: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = [
        "| workflow | tokens an answer | written | return | by seed | solved |",
        "|---|---|---|---|---|---|",
    ]
    for row in found:
        by_seed = ", ".join(f"{value:.3f}" for value in row["returns"])
        lines.append(
            f"| `{row['shape']}` | {row['answer_tokens']} | {row['written']:.0f} "
            f"| {row['return']:.3f} | {by_seed} | {row['solved']:.3f} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate what is missing, and print the table."""
    known = (PLAIN, *SHAPES)
    parser = argparse.ArgumentParser(prog="benchmarks.workflows.shapes", description=__doc__)
    parser.add_argument("--shapes", nargs="+", choices=known, default=known)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--tasks", type=int, default=16, help="tasks per run")
    parser.add_argument("--tokens", type=int, default=512, help="most tokens of an episode")
    parser.add_argument("--model", default="smollm2-135m-instruct")
    parser.add_argument("--out", type=Path, default=Path("runs/shapes"), help="folder of records")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    file = JsonlFile(given.out / "records.jsonl")
    asked = {"model": given.model, "tokens": given.tokens, "tasks": given.tasks}
    code = program()
    made = {shape: {"options": env_options(shape), **code} for shape in given.shapes}
    records = [
        each
        for each in file.records()
        if asked.items() <= each.items() and each.get("made") == made.get(str(each["shape"]), 0)
    ]
    done = {(each["shape"], each["seed"]) for each in records}
    for seed in range(given.seeds):
        for shape in given.shapes:
            if (shape, seed) not in done:
                record = {**run(shape, seed=seed, **asked), "made": made[shape]}
                file.append(record)
                records.append(record)
    records = [each for each in records if int(str(each["seed"])) < given.seeds]
    found = rows(records, given.shapes)
    print(json.dumps(found) if given.json else table(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
