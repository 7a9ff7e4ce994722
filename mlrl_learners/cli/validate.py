"""`mlrl validate`: check the reference of every task, and that empty answers earn the floor."""

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mlrl_envs
from mlrl_learners.cli.parser import at_least, print_json, print_table
from mlrl_learners.config import from_mapping
from mlrl_learners.errors import ConfigError
from mlrl_learners.progress import progress_bar
from mlrl_learners.types import AgentID

__all__ = ["SECTIONS", "Row", "add_arguments", "run", "validate"]

SECTIONS: tuple[str, ...] = ("env",)


@dataclass(frozen=True, slots=True)
class Row:
    """What validation found out about one task.

    Attributes:
        task_id: The task.
        reference: Whether its reference solves it; None where the data has no reference.
        reference_reward: Mean reward of the reference over agents; None without one.
        empty_reward: Mean reward over agents when everyone answers nothing.
        problem: What is wrong, empty if nothing is.
    """

    task_id: str
    reference: bool | None
    reference_reward: float | None
    empty_reward: float
    problem: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.epilog = "Options of the environment can follow: --env.reward paper"
    parser.add_argument("env", help="id of an environment, see mlrl list")
    parser.add_argument("--split", default="all", help="split to check; all by default")
    parser.add_argument("--batch-size", type=at_least(1), default=32, help="tasks scored at once")
    parser.add_argument("--json", action="store_true", help="print every row as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Check every task; the exit status is 1 if one fails."""
    config = from_mapping({"env": {"id": arguments.env}}, overrides)
    options = {**config.env.options, "split": arguments.split}
    started = time.perf_counter()
    rows = validate(config.env.id, options, batch_size=arguments.batch_size)
    seconds = time.perf_counter() - started
    failed = [row for row in rows if row.problem]
    if arguments.json:
        print_json(
            {
                "env_id": config.env.id,
                "options": options,
                "seconds": seconds,
                "failed": len(failed),
                "rows": [asdict(row) for row in rows],
            }
        )
        return 1 if failed else 0
    _print(config.env.id, arguments.split, rows, seconds)
    return 1 if failed else 0


def validate(
    env_id: str, options: Mapping[str, Any], *, batch_size: int = 32, progress: bool = True
) -> list[Row]:
    """Score the reference and an empty joint action of every task.

    Args:
        env_id: A registered environment of ours or one with the same attributes.
        options: Arguments of `mlrl_envs.make`.
        batch_size: Tasks that are scored as one batch, at least 1.
        progress: Show a progress bar.

    Raises:
        ConfigError: If the environment does not say how many tasks it has.
    """
    probe = mlrl_envs.make(env_id, **options)
    num_tasks = getattr(probe, "num_tasks", None)
    probe.close()
    if num_tasks is None:
        raise ConfigError(f"{env_id} does not say how many tasks it has (num_tasks)")
    vector = mlrl_envs.make_vec(env_id, num_envs=min(batch_size, num_tasks), **options)
    rows: list[Row] = []
    with progress_bar(total=num_tasks, description=env_id, enabled=progress) as bar:
        for start in range(0, num_tasks, batch_size):
            indices = range(start, min(start + batch_size, num_tasks))
            rows.extend(_check(vector, indices))
            bar.update(len(indices))
    vector.close()
    return rows


def _check(vector: mlrl_envs.VectorEnv, indices: Sequence[int]) -> Iterator[Row]:
    envs: list[Any] = list(vector.envs[: len(indices)])
    task_ids = _reset(envs, indices)
    references: list[Mapping[AgentID, str] | None] = [env.reference_actions() for env in envs]
    known = [number for number, reference in enumerate(references) if reference is not None]
    steps = mlrl_envs.step_many(
        [envs[number] for number in known], [references[number] or {} for number in known]
    )
    solved = {number: _verdict(step) for number, step in zip(known, steps, strict=True)}
    _reset(envs, indices)
    empty = mlrl_envs.step_many(envs, [dict.fromkeys(env.possible_agents, "") for env in envs])
    for number, (env, step) in enumerate(zip(envs, empty, strict=True)):
        yield _row(task_ids[number], solved.get(number), _verdict(step), env.reward_range[0])


def _reset(envs: Sequence[Any], indices: Sequence[int]) -> list[str]:
    """Begin the tasks and return their ids."""
    task_ids = []
    for env, index in zip(envs, indices, strict=True):
        _, infos = env.reset(seed=0, options={"task_index": index})
        task_ids.append(str(next(iter(infos.values()))["task_id"]))
    return task_ids


def _verdict(step: Sequence[Mapping[AgentID, Any]]) -> tuple[bool, float]:
    """Return whether a step solved its task, and its mean reward over agents."""
    _, rewards, _, _, infos = step
    solved = any(bool(info.get("solved")) for info in infos.values())
    return solved, math.fsum(rewards.values()) / len(rewards)


def _row(
    task_id: str, reference: tuple[bool, float] | None, empty: tuple[bool, float], floor: float
) -> Row:
    problems = []
    if reference is not None and not reference[0]:
        problems.append("the reference does not solve it")
    if empty[0] or empty[1] > max(floor, 0.0):  # worse than nothing can be earned too
        problems.append(f"empty answers earn {empty[1]:.4f}, above the floor {floor:.4f}")
    solved, reward = reference or (None, None)
    return Row(task_id, solved, reward, empty[1], "; ".join(problems))


def _print(env_id: str, split: str, rows: Sequence[Row], seconds: float) -> None:
    with_reference = [row for row in rows if row.reference is not None]
    failed = [row for row in rows if row.problem]
    print_table(
        ("check", "tasks"),
        [
            (f"{env_id} ({split})", len(rows)),
            ("with a reference", len(with_reference)),
            ("reference solves it", sum(row.reference is True for row in rows)),
            ("failing", len(failed)),
            ("seconds", f"{seconds:.1f}"),
        ],
    )
    if failed:
        print()
        print_table(("task", "problem"), [(row.task_id, row.problem) for row in failed])
