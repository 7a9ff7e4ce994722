"""`mlrl validate learner`: train learners on toy environments with a known optimum."""

import argparse
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mlrl_learners.cli.parser import print_json, print_table
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.run import from_mapping
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.progress import progress_bar
from mlrl_learners.registry import make as make_learner
from mlrl_learners.registry import registry
from mlrl_learners.testing.toy_results import (
    LEARNT_TOYS,
    Effort,
    ToyResult,
    accepted_walks,
    play_toys,
)
from mlrl_learners.types import AgentID, Learner

__all__ = ["run"]

AGENTS = ("left", "right")
ONE_AGENT = ("grpo", "rloo", "reinforce_pp", "ppo", "dpo")
# With these options a toy is learned in seconds and its exact gradient is known.
OPTIONS: Mapping[str, Any] = {
    "sampling": {"max_new_tokens": 1, "temperature": 1.0, "top_p": 1.0},
    "optimizer": {"lr": 1e-2},
}
HEADER = ("learner", "toy", "walk", "gradient error", "return before", "after", "best", "")


def run(arguments: argparse.Namespace, names: Sequence[str], overrides: Sequence[str]) -> int:
    """Train each learner on the toys; the exit status is 1 if a return does not rise.

    Raises:
        ConfigError: If no learner is given.
        UnknownNameError: If there is no such learner.
    """
    if not names:
        known = ", ".join(registry)
        raise ConfigError(f"mlrl validate learner needs the name of a learner: {known}")
    for name in names:
        if name not in registry:
            raise unknown_name("learner", name, registry)
    effort = Effort(
        updates=arguments.updates, seeds=arguments.seeds, rollouts=arguments.gradient_rollouts
    )
    results: list[ToyResult] = []
    for name in names:
        make, agents = _factory(name, overrides)
        make(seed=0)  # report wrong options before training
        walks = accepted_walks(make, agents, effort.group_size)
        total = len(walks) * len(LEARNT_TOYS)
        with progress_bar(total=total, description=name, enabled=sys.stderr.isatty()) as bar:
            for result in play_toys(name, make, agents, walks=walks, effort=effort):
                results.append(result)
                bar.update()
        if not arguments.json:
            print_table(HEADER, [_line(each) for each in results if each.learner == name])
    if arguments.json:
        print_json({"results": [result.to_json() for result in results]})
    return int(any(result.problem for result in results))


def _factory(
    name: str, overrides: Sequence[str]
) -> tuple[Callable[..., Learner], tuple[AgentID, ...]]:
    """Return a factory that makes a learner from a seed, and its agents."""
    section = from_mapping({"env": {"id": "toys"}, "learner": {"name": name}}, overrides).learner
    agents = AGENTS[:1] if name in ONE_AGENT else AGENTS
    model: object = section.model
    options = dict(section.options)
    if str(registry[name].factory).startswith("mlrl_learners."):
        options = merge_options(OPTIONS, options)
        if model is None:
            return functools.partial(_with_toy_model, name, agents, options), agents
    return functools.partial(make_learner, name, agents=agents, model=model, **options), agents


def _with_toy_model(
    name: str, agents: tuple[AgentID, ...], options: Mapping[str, Any], seed: int
) -> Learner:
    from mlrl_learners.testing.toy_model import toy_model

    return make_learner(name, agents=agents, model=toy_model(seed), seed=seed, **options)


def _line(result: ToyResult) -> tuple[str, ...]:
    error = ""
    if result.gradient_error is not None:
        error = f"{result.gradient_error:.2f} ± {result.standard_error:.2f}"
    returns = (f"{value:.2f}" for value in (result.before, result.after, result.optimum))
    walk = f"{result.branching}, {result.joint_mode}"
    verdict = "does not rise" if result.problem else ""
    return (result.learner, result.toy, walk, error, *returns, verdict)
