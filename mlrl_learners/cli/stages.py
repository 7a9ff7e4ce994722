"""Stages of `mlrl train`: runs in folders of their own, each from the weights of the last one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import mlrl_envs
from mlrl_learners.cli.early_checks import check_folder
from mlrl_learners.cli.stage_checks import check_stages
from mlrl_learners.config.run import RunConfig, load_config, to_mapping
from mlrl_learners.config.stages import STAGES, stages_mapping
from mlrl_learners.config.yaml import dump_yaml, read_yaml
from mlrl_learners.errors import CheckpointError, ConfigError, RunDirError
from mlrl_learners.processes.work_sharing import exchange, is_main
from mlrl_learners.runs.directory import check_unchanged
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.folders import LEARNER_FOLDER
from mlrl_learners.training.checkpoint import latest_checkpoint
from mlrl_learners.training.loop import TrainResult

__all__ = ["STAGES_FILE", "train_stages"]

STAGES_FILE = "stages.yaml"
Train = Callable[..., TrainResult]
Models = str | dict[str, str] | None


def train_stages(
    stages: Mapping[str, RunConfig], run_dir: Path, train: Train, *, resume: bool
) -> TrainResult:
    """Train the stages that are not finished, and return the result of the last one.

    The folder keeps the configurations in `stages.yaml`, from which a resumed run reads them. A
    stage that the next one has started from is not trained further.

    Args:
        stages: Configuration of each stage, in order.
        run_dir: Folder of all stages; each stage has a folder of its name in it.
        train: Trains one stage; called with a configuration, a folder and `resume`.
        resume: Whether to go on with the stages of the folder.

    Raises:
        RunDirError: If the folder holds stages, and `resume` is false or they are others, or it is
            written by another run.
        ConfigError: See `check_stages`; nothing is written before all stages are checked.
    """
    names = list(stages)
    started = _started(run_dir, names)
    if started and not resume:
        raise RunDirError(f"{str(run_dir)!r} holds stages; pass --resume or another --run-dir")
    stages = {**stages, **_with_stored_models(stages, run_dir, started[1:])}
    for name in started:
        _check_started(run_dir / name, stages[name])
    first = max(len(started) - 1, 0)
    check_stages({name: stages[name] for name in names[first:]}, run_dir)
    exchange(None)  # no process writes before all processes have checked the folder
    if is_main():
        _write(run_dir, stages)
    for number in range(first, len(names)):
        name, config = names[number], stages[names[number]]
        if number >= max(len(started), 1):
            config = _with_model(config, _models(run_dir / names[number - 1]))
        result = train(config, run_dir / name, resume=number < len(started))
        if result.interrupted:
            break
    return replace(result, run_dir=run_dir)


def _started(run_dir: Path, names: Sequence[str]) -> list[str]:
    """Return the stages of a folder that have a run, which must be the first of those given."""
    stored = run_dir / STAGES_FILE
    known = read_yaml(stored)[STAGES] if stored.exists() else names
    started = [name for name in known if (run_dir / name / CONFIG_FILE).exists()]
    if started != names[: len(started)]:
        raise RunDirError(
            f"{str(run_dir)!r} has started the stages {', '.join(started)}; the first of those "
            f"given are {', '.join(names[: len(started)])}"
        )
    return started


def _check_started(folder: Path, config: RunConfig) -> None:
    """Check that the run of a stage can go on with a configuration."""

    def fingerprint() -> object:
        env = mlrl_envs.make(config.env.location, **config.env.options)
        try:
            return mlrl_envs.fingerprint(env)
        finally:
            env.close()

    check_folder(folder, resume=True)
    check_unchanged(folder, to_mapping(config), fingerprint)


def _with_stored_models(
    stages: Mapping[str, RunConfig], run_dir: Path, names: Sequence[str]
) -> dict[str, RunConfig]:
    """Return the configurations of started stages with the models that they started from."""
    stored = {name: load_config(run_dir / name / CONFIG_FILE) for name in names}
    return {name: _with_model(stages[name], stored[name].learner.model) for name in names}


def _write(run_dir: Path, stages: Mapping[str, RunConfig]) -> None:
    """Replace the stored configurations, or leave them as they were."""
    partial = run_dir / f".{STAGES_FILE}.partial"
    try:
        run_dir.mkdir(parents=True, exist_ok=True)
        partial.write_text(dump_yaml(stages_mapping(stages)), "utf-8")
        partial.replace(run_dir / STAGES_FILE)
    except OSError as error:
        raise RunDirError(f"cannot write {str(run_dir / STAGES_FILE)!r}: {error}") from error


def _with_model(config: RunConfig, model: Models) -> RunConfig:
    return replace(config, learner=replace(config.learner, model=model))


def _models(stage: Path) -> Models:
    """Return the models in the last checkpoint of a stage: one, or one for each agent."""
    from mlrl_learners.algorithms.team_weights import read_policy_names

    checkpoint = latest_checkpoint(stage)
    if checkpoint is None:
        raise CheckpointError(f"{str(stage)!r} has no checkpoint yet")
    folder = checkpoint / LEARNER_FOLDER
    models = {agent: str(folder / name) for agent, name in read_policy_names(folder).items()}
    for path in models.values():
        if not (Path(path) / "config.json").is_file():
            raise ConfigError(f"{path!r} holds no whole model: stages do not train adapters")
    return models if len(set(models.values())) > 1 else next(iter(models.values()))
