"""Checks of a run that take no time, before a model is loaded and a folder is made."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import mlrl_envs
from mlrl_learners.cli.opponents import check_opponents
from mlrl_learners.config.env import evaluation_options
from mlrl_learners.config.option_places import grouped
from mlrl_learners.config.run import RunConfig
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.processes.work_sharing import is_main
from mlrl_learners.runs.directory import check_kind
from mlrl_learners.runs.files import CONFIG_FILE, FAILURES_FILE, RUN_FILES
from mlrl_learners.runs.folders import is_below
from mlrl_learners.runs.lock import hold_folder

__all__ = ["check_config", "check_episodes_file", "check_folder", "check_writable"]


def check_folder(run_dir: Path, *, resume: bool) -> None:
    """Check that a run directory can be written, and that it holds no other run.

    Raises:
        RunDirError: If it holds a run that is not resumed or has not ended, or episodes of another
            command, or it cannot be made or written.
    """
    check_kind(run_dir)
    if not resume and (run_dir / CONFIG_FILE).exists():
        raise RunDirError(f"{str(run_dir)!r} holds a run; pass --resume or another --run-dir")
    check_writable(run_dir)
    if is_main() and (run_dir / CONFIG_FILE).exists():
        hold_folder(run_dir).close()


def check_writable(folder: Path) -> None:
    """Check that files can be written into a folder, or that it can be made.

    Raises:
        RunDirError: If not.
    """
    parent = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    try:
        if not parent.is_dir():
            raise NotADirectoryError(f"{str(parent)!r} is a file")
        with tempfile.TemporaryFile(dir=parent):  # permissions do not tell for every file system
            pass
    except OSError as error:
        raise RunDirError(f"cannot write {str(folder)!r}: {error}") from error


def check_episodes_file(path: Path) -> None:
    """Check that a file of episodes is not one that a run or a suite keeps its own records in.

    Raises:
        RunDirError: If it is.
    """
    is_run = any((path.parent / name).exists() for name in (CONFIG_FILE, FAILURES_FILE))
    if is_run and path.name in RUN_FILES:
        raise RunDirError(
            f"{str(path)!r} is of the run in its folder, which could not go on with other episodes "
            "in it; choose another file"
        )


def check_config(config: RunConfig, future: Sequence[Path] = ()) -> None:
    """Check what a configuration names besides its models.

    Args:
        config: A configuration.
        future: Folders that are written before the run begins; episodes and opponents in them are
            not checked.

    Raises:
        ConfigError: If a file of episodes is missing, or sampling by Ray is not possible.
        InvalidArgumentError: If an option of the evaluation or an opponent is wrong.
    """
    config.ray.check_read()
    _check_example_files(config, future)
    if config.train.eval_every:  # report mistakes now, not at the first evaluation
        changed = evaluation_options(config.env.location, config.train.eval_options)
        mlrl_envs.make(config.env.location, **{**config.env.options, **changed}).close()
    check_opponents(config, future)


def _check_example_files(config: RunConfig, future: Sequence[Path]) -> None:
    """Check that the files of episodes that a learner of this package reads are there.

    Raises:
        ConfigError: Naming the first file that is not.
    """
    options = grouped(config.learner.name, config.learner.options)
    for group in ("examples", "preferences"):
        given = options.get(group)
        for path in _paths(given.get("episodes") if isinstance(given, Mapping) else None):
            if not Path(path).is_file() and not is_below(path, future):
                raise ConfigError(
                    f"{group}.episodes: there is no file {path!r}; mlrl collect writes such files"
                )


def _paths(value: object) -> Iterator[str]:
    """Yield the paths of an option: one, one for each agent, or none."""
    for each in value.values() if isinstance(value, Mapping) else [value]:
        if isinstance(each, str) and each:
            yield each
