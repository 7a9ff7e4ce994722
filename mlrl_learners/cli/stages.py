"""Stages of `mlrl train`: runs in folders of their own, each from the weights of the last one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mlrl_learners.config.run import RunConfig
from mlrl_learners.config.stages import stages_mapping
from mlrl_learners.config.yaml import dump_yaml
from mlrl_learners.errors import ConfigError, RunDirError
from mlrl_learners.processes.work_sharing import exchange, is_main
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.folders import LEARNER_FOLDER
from mlrl_learners.training.checkpoint import latest_checkpoint
from mlrl_learners.training.loop import TrainResult

__all__ = ["STAGES_FILE", "train_stages"]

STAGES_FILE = "stages.yaml"
Train = Callable[..., TrainResult]


def train_stages(
    stages: Mapping[str, RunConfig], run_dir: Path, train: Train, *, resume: bool
) -> TrainResult:
    """Train the stages that are not finished, and return the result of the last one.

    The folder keeps the configurations in `stages.yaml`, from which a resumed run reads them.

    Args:
        stages: Configuration of each stage, in order.
        run_dir: Folder of all stages; each stage has a folder of its name in it.
        train: Trains one stage; called with a configuration, a folder and `resume`.
        resume: Whether to go on with the stages of the folder.

    Raises:
        RunDirError: If the folder holds stages, and `resume` is false.
        ConfigError: If a stage trained adapters, which the next stage cannot start from.
    """
    if not resume and (run_dir / STAGES_FILE).exists():
        raise RunDirError(f"{str(run_dir)!r} holds stages; pass --resume or another --run-dir")
    exchange(None)  # no process writes before all processes have checked the folder
    if is_main():
        _write(run_dir, stages)
    before: Path | None = None
    result = None
    for name, config in stages.items():
        folder = run_dir / name
        started = config if before is None else _from(config, before)
        result = train(started, folder, resume=(folder / CONFIG_FILE).exists())
        if result.interrupted:
            break
        before = latest_checkpoint(folder)
    if result is None:
        raise ConfigError("a configuration needs a stage")
    return replace(result, run_dir=run_dir)


def _write(run_dir: Path, stages: Mapping[str, RunConfig]) -> None:
    """Replace the stored configurations, or leave them as they were."""
    partial = run_dir / f".{STAGES_FILE}.partial"
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        partial.write_text(dump_yaml(stages_mapping(stages)), "utf-8")
        partial.replace(run_dir / STAGES_FILE)
    except OSError as error:
        raise RunDirError(f"cannot write {str(run_dir / STAGES_FILE)!r}: {error}") from error


def _from(config: RunConfig, checkpoint: Path) -> RunConfig:
    """Return a configuration whose agents start from the policies of a checkpoint."""
    folder = checkpoint / LEARNER_FOLDER
    names: dict[str, str] = json.loads((folder / "team.json").read_text("utf-8"))["policies"]
    models = {agent: str(folder / policy) for agent, policy in names.items()}
    for path in models.values():
        if not (Path(path) / "config.json").is_file():
            raise ConfigError(f"{path!r} holds no whole model: stages do not train adapters")
    model = models if len(set(models.values())) > 1 else next(iter(models.values()))
    return replace(config, learner=replace(config.learner, model=model))
