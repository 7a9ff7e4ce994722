"""`mlrl validate`: check the tasks of environments, or learners on toy environments.

For an environment, the reference actions of every task, played to the end of the episode, must
solve it, and empty actions must earn the lowest reward. Two kinds differ:

- in a competitive environment the best move need not solve anything: references are not played
- in a game an answer without a legal move may count as a random move: empty actions may earn more
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import mlrl_envs
from mlrl_envs.errors import DataNotFoundError, InfraError
from mlrl_envs.reference_actions import reference_of
from mlrl_learners.cli import validate_learner
from mlrl_learners.cli.parser import at_least, print_json, print_table
from mlrl_learners.cli.spelling import local_install
from mlrl_learners.config.run import from_mapping
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.progress import progress_bar
from mlrl_learners.types import AgentID

__all__ = ["SECTIONS", "Report", "Row", "add_arguments", "run", "validate"]

SECTIONS: tuple[str, ...] = ("env", "learner")


@dataclass(frozen=True, slots=True)
class Row:
    """Validation result of one task.

    Attributes:
        task_id: Id of the task.
        reference: Whether the reference actions solve the task; None if the data has none, or the
            environment is competitive.
        reference_reward: Sum over turns of the mean reward over agents of the reference actions;
            None where they are not played.
        empty_reward: Mean reward over agents of empty actions in the first turn.
        problem: Description of the problem; empty if there is none.
    """

    task_id: str
    reference: bool | None
    reference_reward: float | None
    empty_reward: float
    problem: str


@dataclass(frozen=True, slots=True)
class Report:
    """Validation result of one environment.

    Attributes:
        env_id: Id of the environment.
        options: Options of the environment.
        seconds: Duration of the validation.
        rows: One row per task; None if they could not be checked.
        cause: Why not, in two words.
    """

    env_id: str
    options: Mapping[str, Any]
    seconds: float
    rows: Sequence[Row] | None
    cause: str = ""

    @property
    def failed(self) -> list[Row]:
        """Tasks with a problem."""
        return [row for row in self.rows or () if row.problem]

    def line(self) -> tuple[object, ...]:
        """Return the row of the table."""
        if self.rows is None:
            return (self.env_id, "", self.cause, "", "", "", "")
        references = [row.reference for row in self.rows if row.reference is not None]
        solved, split = sum(references), self.options.get("split", "")
        counts = (len(self.rows), len(references), solved, len(self.failed))
        return (self.env_id, split, *counts, f"{self.seconds:.1f}")

    def to_json(self) -> dict[str, object]:
        """Return the result as JSON values."""
        return {
            "env_id": self.env_id,
            "options": self.options,
            "seconds": self.seconds,
            "failed": None if self.rows is None else len(self.failed),
            "rows": None if self.rows is None else [asdict(row) for row in self.rows],
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = (
        "Options of the environment or the learner can follow: --env.reward paper, "
        "--learner.credit.turn_weights nodes"
    )
    parser.add_argument(
        "env",
        nargs="*",
        help="ids of environments, default: all of mlrl; or the word learner and names of "
        "learners, which are trained on toy environments with a known optimum",
    )
    parser.add_argument(
        "--split", help="split to check; default: all, or that of the environment if it has no all"
    )
    parser.add_argument("--batch-size", type=at_least(1), default=32, help="tasks per batch")
    parser.add_argument(
        "--updates", type=at_least(1), default=40, help="updates per toy environment"
    )
    parser.add_argument("--seeds", type=at_least(1), default=3, help="learners per toy environment")
    parser.add_argument(
        "--gradient-rollouts",
        type=at_least(0),
        default=2000,
        help="rollouts of the mean gradient; 0 to skip it",
    )
    parser.add_argument("--json", action="store_true", help="print every row as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Check every task; the exit status is 1 if one fails or an environment is not checked."""
    if arguments.env[:1] == ["learner"]:
        return validate_learner.run(arguments, arguments.env[1:], overrides)
    env_ids = arguments.env or [name for name in mlrl_envs.registry if name.startswith("mlrl/")]
    if overrides and len(env_ids) > 1:
        raise ConfigError(f"{overrides[0]} is an option of one environment; name which one")
    reports = []
    for env_id in env_ids:
        try:
            reports.append(_report(env_id, arguments, overrides))
        except (DataNotFoundError, InfraError) as error:
            if len(env_ids) == 1:
                raise
            print(f"mlrl: {env_id}: {local_install(str(error))}", file=sys.stderr)
            cause = "no data" if isinstance(error, DataNotFoundError) else "not checked"
            reports.append(Report(env_id, {}, 0.0, None, cause))
    if arguments.json:
        found = [report.to_json() for report in reports]
        print_json(found[0] if len(arguments.env) == 1 else {"environments": found})
    else:
        _print(reports)
    return 0 if all(report.rows is not None and not report.failed for report in reports) else 1


def _report(env_id: str, arguments: argparse.Namespace, overrides: Sequence[str]) -> "Report":
    config = from_mapping({"env": {"id": env_id}}, overrides)
    options = _with_split(config.env.id, config.env.options, arguments.split)
    started = time.perf_counter()
    rows = validate(config.env.id, options, batch_size=arguments.batch_size)
    return Report(config.env.id, options, time.perf_counter() - started, rows)


def _with_split(env_id: str, options: Mapping[str, Any], split: str | None) -> dict[str, Any]:
    """Return the options with a split: the given one, or that they have, or else `all`."""
    if split is not None:
        return {**options, "split": split}
    if "split" in options:
        return dict(options)
    try:
        mlrl_envs.make(env_id, **{**options, "split": "all"}).close()
    except UnknownNameError as error:
        if "split" not in str(error):
            raise
        return dict(options)
    return {**options, "split": "all"}


def validate(
    env_id: str, options: Mapping[str, Any], *, batch_size: int = 32, progress: bool = True
) -> list[Row]:
    """Score the references and an empty joint action of every task.

    Args:
        env_id: A registered environment with `num_tasks` and `reference_actions`.
        options: Arguments of `mlrl_envs.make`.
        batch_size: Tasks per batch, at least 1.
        progress: Whether to show a progress bar.

    Raises:
        ConfigError: If the environment has no `num_tasks`.
    """
    probe = mlrl_envs.make(env_id, **options)
    num_tasks = getattr(probe, "num_tasks", None)
    probe.close()
    if num_tasks is None:
        raise ConfigError(f"{env_id} has no attribute num_tasks")
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
    played = _play_references(envs)
    _reset(envs, indices)
    empty = mlrl_envs.step_many(envs, [dict.fromkeys(env.possible_agents, "") for env in envs])
    for number, (env, step) in enumerate(zip(envs, empty, strict=True)):
        floor = None if _is_game(env) else env.reward_range[0]
        yield _row(task_ids[number], played.get(number), _verdict(step), floor)


def _play_references(envs: Sequence[Any]) -> dict[int, tuple[bool, float]]:
    """Play the reference actions to the end of each episode, all environments at the same time.

    Returns:
        Number of the environment -> whether the last turn solved the task, and the sum over turns
        of the mean reward over agents; nothing where there are no references to play.
    """
    found: dict[int, tuple[bool, float]] = {}
    while references := _references(envs):
        actions = list(references.values())
        steps = mlrl_envs.step_many([envs[number] for number in references], actions)
        for number, step in zip(references, steps, strict=True):
            solved, reward = _verdict(step)
            found[number] = solved, reward + found.get(number, (False, 0.0))[1]
    return found


def _references(envs: Sequence[Any]) -> dict[int, Mapping[AgentID, str]]:
    """Return the reference actions of the next turn where there is one, by environment."""
    playing = {i: env for i, env in enumerate(envs) if env.agents and not _is_competitive(env)}
    found = {number: reference_of(env) for number, env in playing.items()}
    return {number: actions for number, actions in found.items() if actions is not None}


def _is_competitive(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    return bool((getattr(env, "metadata", None) or {}).get("competitive", False))


def _is_game(env: Any) -> bool:  # noqa: ANN401 - any PettingZoo parallel environment
    return _is_competitive(env) or bool(getattr(env, "scripts", ()))


def _reset(envs: Sequence[Any], indices: Sequence[int]) -> list[str]:
    """Reset the environments to the tasks and return the task ids."""
    task_ids = []
    for env, index in zip(envs, indices, strict=True):
        _, infos = env.reset(seed=0, options={"task_index": index})
        task_ids.append(str(next(iter(infos.values()))["task_id"]))
    return task_ids


def _verdict(step: Sequence[Mapping[AgentID, Any]]) -> tuple[bool, float]:
    """Return whether a step solved its task, and the mean reward over agents."""
    _, rewards, _, _, infos = step
    solved = any(bool(info.get("solved")) for info in infos.values())
    return solved, math.fsum(rewards.values()) / len(rewards)


def _row(
    task_id: str,
    reference: tuple[bool, float] | None,
    empty: tuple[bool, float],
    floor: float | None,
) -> Row:
    """Return the result of a task; `floor` is the lowest reward, None in a game."""
    problems = []
    if reference is not None and not reference[0]:
        problems.append("the reference does not solve it")
    if floor is not None and (empty[0] or empty[1] > max(floor, 0.0)):  # it may be negative
        problems.append(f"empty answers earn {empty[1]:.4f}, above the floor {floor:.4f}")
    solved, reward = reference or (None, None)
    return Row(task_id, solved, reward, empty[1], "; ".join(problems))


def _print(reports: Sequence[Report]) -> None:
    header = ("environment", "split", "tasks", "with reference", "solved", "failing", "seconds")
    print_table(header, [report.line() for report in reports])
    failed = [(r.env_id, row.task_id, row.problem) for r in reports for row in r.failed]
    if failed:
        print()
        print_table(("environment", "task", "problem"), failed)
