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
        run_dir: May be empty or still growing.
        output: Path of the file; `report.html` in the run directory by default.

    Raises:
        RunDirError: If the folder does not exist, or the file cannot be written.
    """
    if not run_dir.is_dir():
        raise RunDirError(f"no run directory at {str(run_dir)!r}")
    path = run_dir / "report.html" if output is None else output
    partial = path.with_name(path.name + ".partial")
    try:
        partial.unlink(missing_ok=True)  # a link of this name would be written through
        with partial.open("x", encoding="utf-8") as file:
            file.write(render_report(read_run(run_dir)))
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
