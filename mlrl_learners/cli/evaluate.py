"""`mlrl evaluate`: play a split and print the mean return with its confidence interval."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_learners.cli.actors import SERVED, load_run, make_actor, options_of, run_of, unwrapped
from mlrl_learners.cli.early_checks import check_episodes_file
from mlrl_learners.cli.opponents import check_opponents, evaluation_config, evaluation_seats
from mlrl_learners.cli.parser import at_least, print_json, print_table
from mlrl_learners.config.env import evaluation_options
from mlrl_learners.config.run import RunConfig, from_mapping, to_mapping
from mlrl_learners.config.stored import load_stored_config
from mlrl_learners.errors import CheckpointError, ConfigError, UnknownNameError, unknown_name
from mlrl_learners.evaluation.evaluate import EvaluationResult, evaluate
from mlrl_learners.figures.means import mean, team_return
from mlrl_learners.loggers import JsonlFile
from mlrl_learners.runs.files import CONFIG_FILE
from mlrl_learners.runs.records import episode_record
from mlrl_learners.seeding import MOST_SEED
from mlrl_learners.training.checkpoint import latest_checkpoint
from mlrl_learners.types import Actor, AgentID, Episode

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env", "learner", "opponents")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "Options can follow: --env.max_turns 2 --learner.sampling.max_new_tokens 96"
    parser.add_argument("target", help="id of an environment, or a run directory")
    actor = parser.add_mutually_exclusive_group()
    actor.add_argument("--actor", help="the actor, see mlrl list")
    actor.add_argument("--checkpoint", help="number or folder of a checkpoint; default: the last")
    parser.add_argument("--split", help="split to play; default: eval")
    parser.add_argument("--tasks", type=at_least(1), help="play only the first TASKS tasks")
    parser.add_argument("--samples", type=at_least(1), default=1, help="episodes per task")
    parser.add_argument(
        "--k",
        type=at_least(1),
        nargs="+",
        help="values of k for pass@k; default: powers of two, SAMPLES",
    )
    parser.add_argument("--seed", type=at_least(0, MOST_SEED), default=0, help="random seed")
    parser.add_argument("--greedy", action="store_true", help="greedy decoding instead of sampling")
    parser.add_argument("--episodes", type=Path, help="append every episode to this JSONL file")
    parser.add_argument("--token-ids", action="store_true", help="write token ids to that file")
    parser.add_argument("--json", action="store_true", help="print JSON with transcripts")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Evaluate and print the figures."""
    if arguments.episodes is not None:
        check_episodes_file(arguments.episodes)
    run_dir = run_of(Path(arguments.target))
    config = evaluation_config(_config(arguments.target, run_dir, overrides))
    check_opponents(config)
    options = dict(config.env.options)
    if run_dir is not None:
        options |= config.train.eval_options
    split = arguments.split or options.pop("split", None)
    split = evaluation_options(config.env.location, {"split": split}).get("split")
    own = options_of(from_mapping({"env": {"id": config.env.id}}, overrides).learner)
    owner, done = _origin(arguments, run_dir)
    if arguments.actor is None:
        actor = _trained(arguments, run_dir, own if run_dir is None else config.learner.options)
    else:
        chosen = options if split is None else {**options, "split": split}
        actor = _named(arguments, config, own, chosen)
    result = evaluate(
        env_id=config.env.id,
        env_server=config.env.server,
        actor=actor,
        split=split,
        env_options={name: value for name, value in options.items() if name != "split"},
        samples=arguments.samples,
        k=arguments.k,
        tasks=arguments.tasks,
        seed=arguments.seed,
        explore=not arguments.greedy,
        progress=True,
        on_episode=_episode_writer(arguments, config.env.id, split),
        seats_of=evaluation_seats(config, actor, owner, done, arguments.seed),
    )
    if arguments.json:
        print_json(result.as_dict())
    else:
        _print(result)
    return 0


def _config(target: str, run_dir: Path | None, overrides: Sequence[str]) -> RunConfig:
    if run_dir is not None:
        stored = load_stored_config(run_dir / CONFIG_FILE)
        return from_mapping(to_mapping(stored), overrides)
    try:
        mlrl_envs.registry[target]
    except UnknownNameError as error:
        if Path(target).exists() and not target.endswith(".py"):
            runs = sorted(path.parent for path in Path(target).glob(f"*/{CONFIG_FILE}"))
            fix = f"; give a run, such as '{runs[0]}'" if runs else ""
            raise ConfigError(
                f"{target!r} is not a run directory: it has no {CONFIG_FILE}{fix}"
            ) from None
        message = str(error).replace(
            "unknown environment", "unknown environment or run directory", 1
        )
        raise UnknownNameError(message) from None
    return from_mapping({"env": {"id": target}}, overrides)


def _origin(arguments: argparse.Namespace, run_dir: Path | None) -> tuple[Path | None, int]:
    """Return the run whose checkpoint is evaluated, if any, and the iteration of the checkpoint."""
    if arguments.actor is not None:
        return None, 0
    if run_dir is not None and arguments.checkpoint is not None:
        path: Path | None = _checkpoint(run_dir, arguments.checkpoint)
    else:
        path = Path(arguments.checkpoint or arguments.target)
    owner = run_of(path) if path else None
    if owner is not None and path == owner:
        path = latest_checkpoint(owner)
    number = path.name.rpartition("_")[2] if path else ""
    return owner, int(number) if number.isdigit() else 0


def _agents(env_id: str, options: Mapping[str, Any]) -> list[AgentID]:
    env = mlrl_envs.make(env_id, **options)
    try:
        return list(env.possible_agents)
    finally:
        env.close()


def _named(
    arguments: argparse.Namespace,
    config: RunConfig,
    own: Mapping[str, Any],
    env_options: Mapping[str, Any],
) -> Actor:
    """Return the actor that `--actor` names.

    Args:
        arguments: Arguments of the command.
        config: Configuration of the evaluation.
        own: Options of the command line, for actors that do not take those of `config`.
        env_options: Options of the environment.
    """
    agents = _agents(config.env.location, env_options)
    options = own if _has_options(arguments.actor) else config.learner.options
    return make_actor(arguments.actor, agents, seed=arguments.seed, options=options)


def _episode_writer(
    arguments: argparse.Namespace, env_id: str, split: str | None
) -> Callable[[Episode], None] | None:
    """Return a function that appends an episode to the file of `--episodes`, if it is given."""
    if arguments.episodes is None:
        return None
    file = JsonlFile(arguments.episodes)

    def write(episode: Episode) -> None:
        ids = arguments.token_ids
        file.append(episode_record(episode, token_ids=ids, env_id=env_id, split=split))

    return write


def _has_options(word: str) -> bool:
    """Return whether an actor has options of its own: an endpoint, or another run."""
    _, base = unwrapped(word)
    return base.startswith(f"{SERVED}:") or run_of(Path(base)) is not None


def _trained(
    arguments: argparse.Namespace, run_dir: Path | None, options: Mapping[str, Any]
) -> Actor:
    if run_dir is not None and arguments.checkpoint is not None:
        return load_run(run_dir, _checkpoint(run_dir, arguments.checkpoint), options)
    if run_dir is None and arguments.checkpoint is None:
        raise ConfigError("no actor given: use --actor or --checkpoint")
    path = Path(arguments.checkpoint or arguments.target)
    owner = run_of(path)
    if owner is None:
        raise CheckpointError(f"{str(path)!r} is neither a run directory nor a checkpoint of one")
    return load_run(owner, None if owner == path else path, options)


def _checkpoint(run_dir: Path, word: str) -> Path:
    """Find a checkpoint of a run by its number or folder."""
    known = sorted(path.name for path in (run_dir / "checkpoints").glob("step_*"))
    for path in (run_dir / "checkpoints" / f"step_{word}", Path(word)):
        if path.is_dir():
            return path
    raise CheckpointError(str(unknown_name("checkpoint", f"step_{word}", known)))


def _print(result: EvaluationResult) -> None:
    parts = result.component_intervals
    rows: list[tuple[str, object]] = [
        ("environment", f"{result.env_id} ({result.split})"),
        ("episodes", f"{len(result.episodes)} of {len(result.task_returns)} tasks"),
        ("mean return", _with_interval(result.mean_return, result.interval)),
        *((f"  of {agent}", f"{value:.4f}") for agent, value in result.agent_returns.items()),
        *((f"  against {name}", f"{value:.4f}") for name, value in _by_opponent(result)),
        *((f"  from {n}", _with_interval(v, parts[n])) for n, v in result.components.items()),
        ("solved", _with_interval(result.solved_rate, result.solved_interval)),
        *(
            (
                f"  in {name}",
                f"{_with_interval(e.mean_return, e.interval)}, solved {e.solved_rate:.4f}",
            )
            for name, e in result.environments.items()
        ),
        *((f"pass@{k}", f"{value:.4f}") for k, value in result.pass_at_k.items() if k > 1),
        ("tokens", _tokens(result.tokens, result.prompt_tokens)),
        *(
            (f"  of {agent}", _tokens(used.completion_tokens, used.prompt_tokens))
            for agent, used in result.agent_tokens.items()
        ),
        ("seconds", f"{result.seconds:.1f}, {result.seconds_per_episode:.3f} an episode"),
    ]
    if result.failures:
        rows.append(("left out", f"{len(result.failures)}: {result.failures[0].message}"))
    print_table(("figure", "value"), rows)


def _by_opponent(result: EvaluationResult) -> Iterator[tuple[str, float]]:
    """Yield each opponent and the mean return of the episodes against it."""
    names = {name for each in result.episodes for name in each.opponents.values()}
    for name in sorted(names):
        met = [each for each in result.episodes if name in each.opponents.values()]
        yield name, mean([team_return(each) for each in met])


def _with_interval(value: float, interval: tuple[float, float]) -> str:
    return f"{value:.4f}  [{interval[0]:.4f}, {interval[1]:.4f}]"


def _tokens(written: int, read: int) -> str:
    return f"{written} written, {read} read"
