"""Report of a run as one self-contained HTML file: figures, curves and transcripts.

The file contains no script and loads nothing from the network; every text of a model or a user is
escaped. Live runs are covered by `mlrl_learners.monitor`.
"""

from pathlib import Path

from mlrl_learners.errors import RunDirError
from mlrl_learners.report.html import page, tag
from mlrl_learners.report.sections import (
    configuration,
    curves,
    evaluation_groups,
    headline,
    played,
    training_samples,
)
from mlrl_learners.report.styles import stylesheet
from mlrl_learners.runs.files import CONFIG_FILE, CROSSPLAY_FILE, RESULT_FILE, RUN_FILES
from mlrl_learners.runs.stored_run import StoredRun, read_run

__all__ = ["read_reported", "render_report", "write_report"]

_SHOWN_EPISODES = 10
_KNOWN_FILES = {*RUN_FILES, RESULT_FILE, CROSSPLAY_FILE, "report.html"}


def write_report(run_dir: Path, output: Path | None = None, run: StoredRun | None = None) -> Path:
    """Write the report of a run directory and return its path.

    Args:
        run_dir: A run, which may be empty or still growing, the folder of a suite, or a file of
            episodes.
        output: Path of the report; by default `report.html` in the folder, or the name of the file
            with `.html`.
        run: Contents of `run_dir` from `read_reported`; None to read them.

    Raises:
        RunDirError: If it does not exist, holds no episodes or is a folder of other files, or the
            report cannot be written.
    """
    run = read_reported(run_dir) if run is None else run
    beside = run_dir / "report.html" if run_dir.is_dir() else run_dir.with_suffix(".html")
    path = beside if output is None else output
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # a link of this name would be written through
        with partial.open("x", encoding="utf-8") as file:
            file.write(render_report(run))
        partial.replace(path)
    except OSError as error:
        raise RunDirError(f"cannot write {str(path)!r}: {error}") from error
    return path


def read_reported(run_dir: Path) -> StoredRun:
    """Read what a report shows.

    Raises:
        RunDirError: If it does not exist, holds no episodes or is a folder of other files.
    """
    if not run_dir.exists():
        raise RunDirError(f"no run directory at {str(run_dir)!r}")
    _check_folder(run_dir)
    run = read_run(run_dir)
    if run_dir.is_file() and not run.evaluations:
        raise RunDirError(
            f"{str(run_dir)!r} holds no episodes; mlrl evaluate --episodes writes them"
        )
    return run


def _check_folder(folder: Path) -> None:
    """Raise for a folder with other files than those of a run or a suite, such as one of runs."""
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if not names or names & _KNOWN_FILES:
        return
    runs = sorted(name for name in names if (folder / name / CONFIG_FILE).exists())
    fix = f"give one of its runs, such as {str(folder / runs[0])!r}" if runs else "give a run"
    raise RunDirError(f"{str(folder)!r} is not the folder of a run: {fix}")


def render_report(run: StoredRun) -> str:
    """Return the whole document."""
    groups = evaluation_groups(run)
    return page(
        f"mlrl report: {run.name}",
        stylesheet(),
        tag("header", tag("h1", run.name)),
        headline(run),
        curves(run),
        [played(group, limit=_SHOWN_EPISODES) for group in groups],
        training_samples(run),
        configuration(run),
    )
