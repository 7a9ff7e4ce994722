"""`mlrl play`: play one episode and print the transcript."""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import mlrl_envs
from mlrl_envs.reference_actions import reference_of
from mlrl_envs.workflows import Graph, describe
from mlrl_learners.cli.actors import make_actor, options_of
from mlrl_learners.cli.parser import at_least, print_json, printable
from mlrl_learners.config.run import from_mapping
from mlrl_learners.play.rollout import play_episodes
from mlrl_learners.runs.records import episode_record
from mlrl_learners.seeding import MOST_SEED
from mlrl_learners.types import Actor, Episode, EpisodeTurn

__all__ = ["SECTIONS", "add_arguments", "run"]

SECTIONS: tuple[str, ...] = ("env", "learner")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.epilog = "Options can follow: --env.max_turns 2 --learner.sampling.max_new_tokens 96"
    parser.add_argument("env", help="id of an environment, see mlrl list")
    parser.add_argument(
        "--actor",
        help="the actor, see mlrl list; default: reference if the task has one, else random",
    )
    parser.add_argument(
        "--workflow", metavar="NAME", help="play through a graph of agents, see mlrl list"
    )
    parser.add_argument("--task-id", help="id of the task")
    parser.add_argument("--seed", type=at_least(0, MOST_SEED), default=0, help="random seed")
    parser.add_argument("--greedy", action="store_true", help="greedy decoding instead of sampling")
    parser.add_argument("--json", action="store_true", help="print the episode as JSON")


def run(arguments: argparse.Namespace, overrides: Sequence[str]) -> int:
    """Play one episode."""
    drawn = [] if arguments.workflow is None else ["--env.workflow", arguments.workflow]
    config = from_mapping({"env": {"id": arguments.env}}, [*drawn, *overrides])
    env = mlrl_envs.make(config.env.location, **config.env.options)
    task = {} if arguments.task_id is None else {"task_id": arguments.task_id}
    try:
        env.reset(seed=arguments.seed, options=task)
        actor = _actor(arguments, env, options_of(config.learner))
        (episode,) = play_episodes(
            [env],
            actor,
            task_options=[task],
            seeds=[arguments.seed],
            explore=not arguments.greedy,
        )
    finally:
        env.close()
    if arguments.json:
        print_json(episode_record(episode, env_id=config.env.id))
    else:
        _print_workflow(env)
        _print(config.env.id, episode)
    return 0


def _actor(
    arguments: argparse.Namespace,
    env: Any,  # noqa: ANN401 - any PettingZoo parallel environment
    options: Mapping[str, Any],
) -> Actor:
    """Make the actor; the environment must be reset to the task."""
    word = arguments.actor or ("reference" if reference_of(env) else "random")
    return make_actor(word, list(env.possible_agents), seed=arguments.seed, options=options)


def _print_workflow(env: Any) -> None:  # noqa: ANN401 - any PettingZoo parallel environment
    """Print who reads whom in a workflow."""
    graph = getattr(getattr(env, "family", None), "graph", None)
    if isinstance(graph, Graph):
        print(f"workflow {graph.name}: step, node <- nodes that it reads => agent that it plays")
        print(f"{describe(graph)}\n")


def _print(env_id: str, episode: Episode) -> None:
    print(f"{env_id}  task {episode.task_id}  seed {episode.seed}")
    for number, turn in enumerate(episode.turns, start=1):
        print(f"\n=== turn {number} ===")
        _print_turn(turn)
    returns = ", ".join(f"{agent} {value:.4f}" for agent, value in episode.returns.items())
    print(f"\nreturns: {returns}; {'solved' if episode.solved else 'not solved'}")


def _print_turn(turn: EpisodeTurn) -> None:
    for agent, observation in turn.observations.items():
        _section(f"{agent} reads", observation, sys.stdout.write)
    for agent, completion in turn.completions.items():
        _section(f"{agent} writes", completion.text, sys.stdout.write)
    for agent in (each for each in turn.rewards if each not in turn.completions):
        print(f"\n--- {agent} waits ---")
    for agent, reward in turn.rewards.items():
        parts = ", ".join(f"{name} {value:.4f}" for name, value in turn.components[agent].items())
        print(f"\n{agent} earns {reward:.4f} ({parts})")
        facts = turn.infos.get(agent, {}).get("diagnostics")
        if isinstance(facts, Mapping):  # the graph is printed once, before the episode
            facts = {name: value for name, value in facts.items() if name != "workflow"}
        for line in _flat(facts):
            print(f"    {printable(line)}")


def _flat(value: object, name: str = "") -> Iterator[str]:
    """Yield one line for each value in nested diagnostics."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, f"{name} {key}".strip())
    elif isinstance(value, list | tuple):
        for inner in value:
            facts = list(inner.values()) if isinstance(inner, Mapping) else [inner]
            yield f"{name}: {', '.join(_words(facts))}".removeprefix(": ")
    elif value is not None:
        yield f"{name}: {value}".removeprefix(": ")


def _words(facts: Sequence[object]) -> Iterator[str]:
    for fact in facts:
        if isinstance(fact, list | tuple):
            yield from _words(fact)
        elif fact is not None and not isinstance(fact, bool):  # words say it already
            yield str(fact)


def _section(title: str, text: str, write: Callable[[str], object]) -> None:
    write(f"\n--- {title} ---\n{printable(text)}\n")
