"""Stages of `mlrl train`: runs in folders of their own, each from the weights of the last one."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mlrl_learners.config.presets import read_source
from mlrl_learners.config.run import RunConfig
from mlrl_learners.config.stages import stage_configs
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
    source: str | Path, run_dir: Path, overrides: Sequence[str], train: Train, *, resume: bool
) -> TrainResult:
    """Train the stages that are not finished, and return the result of the last one.

    Args:
        source: A file with stages.
        run_dir: Folder of all stages; each stage has a folder of its name in it.
        overrides: Words of the command line.
        train: Trains one stage; called with a configuration, a folder and `resume`.
        resume: Whether to go on with the stages of the folder.

    Raises:
        RunDirError: If the folder holds stages, and `resume` is false.
        ConfigError: If a stage trained adapters, which the next stage cannot start from.
    """
    stages = stage_configs(read_source(source), overrides)  # type: ignore[arg-type]  # checked
    copy = run_dir / STAGES_FILE
    if not resume and copy.exists():
        raise RunDirError(f"{str(run_dir)!r} holds stages; pass --resume or another --run-dir")
    exchange(None)  # no process writes before all processes have checked the folder
    if is_main() and Path(source).resolve() != copy.resolve():
        run_dir.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, copy)
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
