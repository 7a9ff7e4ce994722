"""`mlrl train`: train agents with a preset or a configuration file."""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import mlrl_envs
from mlrl_learners.cli.actors import make_learner
from mlrl_learners.cli.early_checks import check_config, check_folder
from mlrl_learners.cli.opponents import make_players
from mlrl_learners.cli.parser import print_json
from mlrl_learners.cli.stages import STAGES_FILE, train_stages
from mlrl_learners.config.presets import read_source
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.config.run import RunConfig, load_config, to_mapping
from mlrl_learners.config.stages import has_stages, stage_configs
from mlrl_learners.config.stored import with_absolute_paths
from mlrl_learners.errors import ConfigError
from mlrl_learners.loggers import open_loggers
from mlrl_learners.processes.work_sharing import exchange, finish, is_main, start, together
from mlrl_learners.runs.directory import check_same_everywhere
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.training.checkpoint import check_resumable
from mlrl_learners.training.loop import TrainResult, train
from mlrl_learners.types import RolloutConfig

__all__ = ["SECTIONS", "add_arguments", "run", "train_config"]

SECTIONS: tuple[str, ...] = (
    *("env", "learner", "rollout", "train", "logging", "opponents", "code"),
    "ray",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "Any key of the configuration can follow: --train.iterations 3 --env.split all"
    parser.add_argument(
        "source", nargs="?", help="a preset (mlrl list) or a YAML file; not needed with --resume"
    )
    parser.add_argument("--run-dir", type=Path, help="run directory; default: runs/NAME-TIME")
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument(
        "--engine",
        choices=("torch", "ray"),
        help="who samples: this process, or processes of Ray; default: as stored, or torch",
    )
    parser.add_argument(
        "--lag", metavar="K", help="iterations that sampling by Ray may be ahead; default: 0"
    )


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Train and print the result."""
    start()
    with together():
        result = _train(arguments, overrides)
    finish()
    if is_main():
        _report(result, as_json=arguments.json)
    return 130 if result.interrupted else 0


def _train(arguments: argparse.Namespace, overrides: Sequence[str]) -> TrainResult:
    source, run_dir = _source(arguments), _run_dir(arguments)
    overrides = [*overrides, *_engine(arguments)]
    raw = read_source(source)
    if has_stages(raw):
        stages = {
            name: with_absolute_paths(config, arguments.imports)
            for name, config in stage_configs(raw, overrides).items()
        }
        return train_stages(stages, run_dir, train_config, resume=arguments.resume)
    config = with_absolute_paths(load_config(source, overrides), arguments.imports)
    return train_config(config, run_dir, resume=arguments.resume)


def _report(result: TrainResult, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "run_dir": str(result.run_dir),
                "iterations": result.iterations,
                "interrupted": result.interrupted,
                "metrics": dict(result.metrics),
            }
        )
    else:
        print(_sentence(result))
    if result.interrupted:
        print(f"to continue: mlrl train --run-dir {result.run_dir} --resume", file=sys.stderr)


def train_config(
    config: RunConfig, run_dir: Path, *, resume: bool = False, progress: bool = True
) -> TrainResult:
    """Train with a configuration; see `mlrl_learners.train` for the exceptions."""
    check_folder(run_dir, resume=resume)  # before a model is loaded
    check_config(config)
    if resume:
        check_resumable(run_dir)
    config = _in_iterations(config)
    # No process writes before all processes have checked the folder.
    check_same_everywhere(to_mapping(config), None)
    players = make_players(config)
    learner = make_learner(config)
    if config.train.epochs is not None and getattr(learner, "offline", False):
        raise ConfigError("train.epochs counts tasks, and this learner plays none: set iterations")
    loggers = open_loggers(run_dir, to_mapping(config)) if is_main() else []
    try:
        return train(
            env_id=config.env.id,
            env_options=config.env.options,
            env_server=config.env.server,
            learner=learner,
            rollout=config.rollout.apply(getattr(learner, "rollout", RolloutConfig())),
            iterations=config.train.iterations,
            tasks_per_iteration=config.train.tasks_per_iteration,
            seed=config.train.seed,
            checkpoint_every=config.train.checkpoint_every,
            keep_checkpoints=config.train.keep_checkpoints,
            eval_every=config.train.eval_every,
            eval_tasks=config.train.eval_tasks,
            eval_samples=config.train.eval_samples,
            eval_options=config.train.eval_options,
            run_dir=run_dir,
            token_ids=config.logging.token_ids,
            loggers=loggers,
            resume=resume,
            progress=progress,
            config=to_mapping(config),
            opponents=config.opponents,
            players=players,
            ray=config.ray,
        )
    finally:
        for logger in loggers:
            logger.close()


def _engine(arguments: argparse.Namespace) -> list[str]:
    """Return the overrides that `--engine` and `--lag` stand for."""
    words = []
    if arguments.engine == "torch":
        words = [f"--ray.{name}={value}" for name, value in asdict(RayConfig()).items()]
    elif arguments.engine == "ray":
        words = ["--ray.enabled=true"]
    return words if arguments.lag is None else [*words, f"--ray.lag={arguments.lag}"]


def _in_iterations(config: RunConfig) -> RunConfig:
    """Return the configuration with the iterations of its epochs."""
    if config.train.epochs is None:
        return config
    env = mlrl_envs.make(config.env.location, **config.env.options)
    num_tasks = getattr(env, "num_tasks", None)
    env.close()
    return replace(config, train=config.train.in_iterations(num_tasks))


def _run_dir(arguments: argparse.Namespace) -> Path:
    """Return the chosen run directory, or `runs/NAME-TIME`; rank 0 reads the clock."""
    if arguments.run_dir is not None:
        return Path(arguments.run_dir)
    if arguments.resume:
        raise ConfigError("--resume needs the run: add --run-dir")
    name = f"{Path(arguments.source).stem}-{time.strftime('%Y%m%d-%H%M%S')}"
    return Path("runs") / str(exchange(name)[0])


def _source(arguments: argparse.Namespace) -> str | Path:
    if arguments.source is not None:
        return str(arguments.source)
    if arguments.resume:
        run_dir = _run_dir(arguments)
        for name in (STAGES_FILE, CONFIG_FILE):
            if (run_dir / name).is_file():
                return run_dir / name
        raise ConfigError(f"there is no run in '{run_dir}'; give a preset or a file to begin one")
    raise ConfigError("give a preset or a configuration file; mlrl list shows the presets")


def _sentence(result: TrainResult) -> str:
    value = result.metrics.get("train/return")
    last = "" if value is None else f", last mean return {value:.3f}"
    done = f"{result.iterations} iteration{'' if result.iterations == 1 else 's'}"
    return f"{done}{last}, in {result.run_dir}"
