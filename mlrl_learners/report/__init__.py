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
from mlrl_learners.runs.stored_run import StoredRun, read_run

__all__ = ["render_report", "write_report"]

_SHOWN_EPISODES = 10


def write_report(run_dir: Path, output: Path | None = None) -> Path:
    """Write the report of a run directory and return its path.

    Args:
        run_dir: A run, which may be empty or still growing, the folder of a suite, or a file of
            episodes.
        output: Path of the report; by default `report.html` in the folder, or the name of the file
            with `.html`.

    Raises:
        RunDirError: If it does not exist or holds no episodes, or the report cannot be written.
    """
    if not run_dir.exists():
        raise RunDirError(f"no run directory at {str(run_dir)!r}")
    run = read_run(run_dir)
    if run_dir.is_file() and not run.evaluations:
        raise RunDirError(
            f"{str(run_dir)!r} holds no episodes; mlrl evaluate --episodes writes them"
        )
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
