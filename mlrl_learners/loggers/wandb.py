"""Metrics in Weights & Biases, with or without a network."""

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from mlrl_learners.errors import ConfigError, RunDirError

__all__ = ["WandbLogger"]


class WandbLogger:
    """Sends metrics to Weights & Biases, or keeps them in the run directory when offline.

    The run's id is kept in `run_dir/wandb/run_id`, so that a resumed run goes on in the same chart.

    Args:
        run_dir: The run directory; Weights & Biases writes below its `wandb/`.
        project: Project the run belongs to.
        name: Name shown for the run; by default that of the run directory.
        mode: `"offline"` needs neither network nor account (`wandb sync` uploads it later).
        config: Resolved configuration, shown beside the curves.

    Raises:
        ConfigError: If the `wandb` package is missing or `mode` is unknown.
        RunDirError: If the run cannot be started: no disk, no network, no login.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        project: str = "mlrl",
        name: str | None = None,
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


def _run_id(run_dir: Path) -> str:
    file = run_dir / "wandb" / "run_id"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(uuid.uuid4().hex[:12] + "\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
