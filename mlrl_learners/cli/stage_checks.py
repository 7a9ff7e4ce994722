"""Checks of all stages of a run, before the first one is trained and a folder is made.

Models are not loaded, so a model that does not exist or does not fit is reported by its stage.
So are files and opponents in the folder of an earlier stage, which writes them.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import mlrl_envs
from mlrl_envs.errors import MlrlError
from mlrl_learners.cli.early_checks import check_config
from mlrl_learners.config.run import RunConfig
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.registry import BUILT_IN, registry
from mlrl_learners.types import AgentID

__all__ = ["check_stages"]


def check_stages(stages: Mapping[str, RunConfig], run_dir: Path) -> None:
    """Check the environments and the options of the learners of all stages.

    Args:
        stages: Configuration of each stage, in order.
        run_dir: Folder with the folders of the stages, which need not exist.

    Raises:
        UnknownNameError: If there is no such learner, option or agent.
        ConfigError: If a value is outside its range, a file of examples is missing, a stage but
            the last has adapters or frozen agents, or stages differ in their agents.
    """
    *earlier, _ = stages
    before: dict[AgentID, str] = {}
    for number, (name, config) in enumerate(stages.items()):
        with _naming(name):
            check_config(config, [run_dir / each for each in earlier[:number]])
            before = _check_learner(config, before, is_last=name not in earlier)


def _check_learner(
    config: RunConfig, before: Mapping[AgentID, str], *, is_last: bool
) -> dict[AgentID, str]:
    """Check the options of a learner; return the policy of each agent, if they are known.

    Args:
        config: Configuration of the stage.
        before: Policy of each agent in the stage before; empty if not known.
        is_last: Whether no stage starts from this one.
    """
    from mlrl_learners.algorithms.learner_configs import team_config
    from mlrl_learners.algorithms.team_models import assign_policies, policy_sources
    from mlrl_learners.policies.schedule import planned_steps

    learner = config.learner.name
    if learner not in registry:
        raise unknown_name("learner", learner, registry)
    if registry[learner] not in BUILT_IN:  # it checks its own options
        return {}
    env = mlrl_envs.make(config.env.location, **config.env.options)
    agents, num_tasks = list(env.possible_agents), getattr(env, "num_tasks", None)
    env.close()
    team = team_config(learner, config.learner.options, agents)
    team.check_rollout(config.rollout.apply(team.group.rollout))
    planned_steps(team.optimizer, config.train.in_iterations(num_tasks).iterations)
    policies = assign_policies(agents, team.team)
    if before:
        policy_sources(policies, before if len(set(before.values())) > 1 else "any")
    if not is_last:
        _check_whole(policies, frozen=team.team.frozen, rank=team.lora.rank)
    return policies


def _check_whole(policies: Mapping[AgentID, str], *, frozen: Sequence[AgentID], rank: int) -> None:
    """Refuse checkpoints that lack whole models, from which the next stage starts."""
    needs = "the next stage starts from whole models: set it in the last stage alone"
    if rank:
        raise ConfigError(f"learner.options.lora.rank is {rank}, and {needs}")
    trained = {policies[agent] for agent in policies if agent not in frozen}
    if set(policies.values()) - trained:
        raise ConfigError(f"learner.options.team.frozen is {list(frozen)}, and {needs}")


@contextlib.contextmanager
def _naming(stage: str) -> Iterator[None]:
    """Let errors begin with the name of a stage."""
    try:
        yield
    except MlrlError as error:
        raise type(error)(f"stage {stage!r}: {error}") from error
