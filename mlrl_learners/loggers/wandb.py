"""Weights & Biases logger, online or offline."""

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mlrl_learners.errors import ConfigError, RunDirError

__all__ = ["WandbLogger", "open_logger"]


class WandbLogger:
    """Sends metrics to Weights & Biases, or writes them to the run directory if offline.

    The id of the run is stored in `run_dir/wandb/run_id`, so that a resumed run continues the same
    charts.

    Args:
        run_dir: The run directory; files are written to its `wandb/`.
        project: Project of the run.
        name: Displayed name; by default the name of the run directory.
        entity: User or team; by default that of the account.
        group: Group of runs.
        tags: Tags of the run.
        mode: `"offline"` needs neither network nor account; `wandb sync` uploads the files later.
        config: Resolved configuration.

    Raises:
        ConfigError: If the `wandb` package is missing or `mode` is unknown.
        RunDirError: If the run cannot be started, for lack of disk space, network or login.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        project: str = "mlrl",
        name: str | None = None,
        entity: str | None = None,
        group: str | None = None,
        tags: Sequence[str] = (),
        mode: Literal["offline", "online"] = "offline",
        config: Mapping[str, object] | None = None,
    ) -> None:
        if mode not in ("offline", "online"):
            raise ConfigError(f"wandb mode must be offline or online, got {mode!r}")
        try:
            import wandb
        except ImportError as error:
            fix = "pip install 'mlrl[wandb]', or set logging.wandb to off"
            raise ConfigError(f"Weights & Biases is not installed: {fix}") from error
        try:
            self._run = wandb.init(
                project=project,
                name=name or Path(run_dir).resolve().name,
                entity=entity,
                group=group,
                tags=list(tags),
                id=_run_id(Path(run_dir)),
                resume="allow",
                dir=str(run_dir),
                mode=mode,
                config=dict(config or {}),
                settings=wandb.Settings(silent=True, console="off"),
            )
        except (OSError, wandb.Error) as error:
            fix = "set logging.wandb to offline or off"
            raise RunDirError(
                f"cannot start Weights & Biases in {run_dir}: {error}; {fix}"
            ) from error

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Send the metrics of one step."""
        self._run.log(dict(metrics), step=step)

    def close(self) -> None:
        """Flush and end the run."""
        self._run.finish()


def open_logger(run_dir: Path, config: Mapping[str, Any]) -> WandbLogger | None:
    """Return the logger if `logging.wandb` is `offline` or `online`."""
    logging = config["logging"]
    mode = logging["wandb"]
    if mode == "off":
        if "wandb" not in logging["loggers"]:
            return None
        mode = "offline"
    return WandbLogger(
        run_dir,
        project=logging["wandb_project"],
        name=logging["wandb_name"],
        entity=logging.get("wandb_entity"),
        group=logging.get("wandb_group"),
        tags=logging.get("wandb_tags") or (),
        mode=mode,
        config=config,
    )


def _run_id(run_dir: Path) -> str:
    file = run_dir / "wandb" / "run_id"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex[:12] + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
