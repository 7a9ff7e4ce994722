"""Own prompts of the writing families: from a list, a data set or a file of JSON lines."""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.shell.env import TextParallelEnv
from mlrl_envs.tasks import WritingTask

__all__ = ["prompts_of", "take_prompts", "with_sources"]

PROMPTS, PROMPT_COLUMN = "prompts", "prompt_column"
DEFAULT_COLUMN = "prompt"


def take_prompts(options: dict[str, Any], family: Any) -> list[str] | None:  # noqa: ANN401  a class
    """Read own prompts; leave texts to a family with this option, or remove and return them.

    Args:
        options: Options of an environment, changed here.
        family: Class of the task family; others take `prompts` as an option of their own.
    """
    column = options.pop(PROMPT_COLUMN, None)
    if options.get(PROMPTS) is None:
        if column is not None:
            raise InvalidArgumentError("prompt_column is the column of prompts: give prompts, too")
        return None
    config = getattr(family, "config_type", None)
    if config is None:
        return None
    found = prompts_of(options.pop(PROMPTS), column)
    if PROMPTS in {each.name for each in dataclasses.fields(config)}:
        options[PROMPTS] = found
        return None
    options["split"] = "sample"  # other texts, which a reward compares with; they are not played
    return found


def prompts_of(value: Any, column: str | None = None) -> list[str]:  # noqa: ANN401  a list or a data set
    """Return the prompts in a value.

    Args:
        value: Texts; rows, which are mappings; an object with `column_names` and columns by name,
            such as a `datasets.Dataset`; or the path of a file of JSON lines.
        column: Column of the prompts in rows; None for `"prompt"`.

    Raises:
        UnknownNameError: If there is no such column.
        InvalidArgumentError: If there is no prompt, one is no text or empty, a file cannot be read,
            or a column is named for a list of texts.
    """
    name = DEFAULT_COLUMN if column is None else column
    if isinstance(value, str | Path):
        value = _rows_of(Path(value))
    if hasattr(value, "column_names"):
        _check_column(name, value.column_names)
        found: list[Any] = list(value[name])
    elif not isinstance(value, Iterable) or isinstance(value, Mapping | bytes):
        raise InvalidArgumentError(f"prompts must be a list of texts, got {value!r}")
    else:
        rows = list(value)
        if column is not None and any(isinstance(row, str) for row in rows):
            raise InvalidArgumentError(f"prompts are texts and have no column {column!r}")
        found = [_cell(row, name) if isinstance(row, Mapping) else row for row in rows]
    for prompt in found:
        if not isinstance(prompt, str) or not prompt.strip():
            raise InvalidArgumentError(f"prompts must be non-empty texts, got {prompt!r}")
    if not found:
        raise InvalidArgumentError(f"prompts must be a list of texts, got {value!r}")
    return found


def with_sources(env: Any, sources: list[str] | None) -> Any:  # noqa: ANN401  any environment
    """Return an environment of writers that retell the sources; `env` itself without sources.

    Args:
        env: An environment of `WritingTask`; others have no sources.
        sources: A text for each task.

    Raises:
        InvalidArgumentError: If the environment has other tasks.
    """
    if sources is None:
        return env
    if not isinstance(env, TextParallelEnv) or not isinstance(env.family.tasks[0], WritingTask):
        name = getattr(env, "metadata", {}).get("name")
        raise InvalidArgumentError(f"{name} has no option prompts: its tasks are more than a text")
    tasks = tuple(WritingTask(f"own/{n}", source) for n, source in enumerate(sources))
    made = TextParallelEnv(
        _with_tasks(env.family, tasks),
        env_id=env.metadata["name"],
        sandbox=env.sandbox,
        render_mode=env.render_mode,
    )
    made.metadata = {**env.metadata, **made.metadata}
    return made


def _with_tasks(family: Any, tasks: tuple[WritingTask, ...]) -> Any:  # noqa: ANN401  a family
    inner = getattr(family, "family", None)  # of one with an expert
    if inner is not None:
        return dataclasses.replace(family, family=_with_tasks(inner, tasks))
    return dataclasses.replace(family, tasks=tasks)


def _rows_of(path: Path) -> list[Any]:
    if path.suffix != ".jsonl":
        raise InvalidArgumentError(f"prompts must be a list or a .jsonl file, got {str(path)!r}")
    try:
        lines = path.read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if line.strip()]
    except OSError as error:
        raise InvalidArgumentError(f"prompts: {error.strerror}: {str(path)!r}") from None
    except ValueError as error:  # not UTF-8, or not JSON
        raise InvalidArgumentError(f"prompts: {str(path)!r} is no file of JSON lines") from error


def _cell(row: Mapping[str, Any], column: str) -> Any:  # noqa: ANN401  checked by the caller
    _check_column(column, row)
    return row[column]


def _check_column(column: str, known: Iterable[str]) -> None:
    names = list(known)
    if column not in names:
        raise unknown_name("prompt_column", column, names)
