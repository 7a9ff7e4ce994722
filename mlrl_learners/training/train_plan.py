"""Arguments of a training run that determine its results, its result, and checks before it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import mlrl_envs
from mlrl_envs.mixtures import MIXTURE
from mlrl_envs.naming import is_in_memory
from mlrl_envs.serve import remote_id
from mlrl_learners.config.opponents import LATEST, SNAPSHOTS, OpponentsConfig
from mlrl_learners.config.ray import RayConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.processes.work_sharing import world
from mlrl_learners.selfplay.opponents import OpponentDraw
from mlrl_learners.selfplay.snapshots import SnapshotPool
from mlrl_learners.types import Actor, AgentID, Learner, RolloutConfig
from mlrl_learners.types.contract import check_methods

__all__ = [
    "TrainPlan",
    "TrainResult",
    "check_agents",
    "check_processes",
    "draw_of",
    "prepare_learner",
]


@dataclass(frozen=True)
class TrainPlan:
    """Arguments of `mlrl_learners.train` that determine the results of a run."""

    env_id: str
    env_options: dict[str, Any]
    rollout: RolloutConfig
    iterations: int
    tasks_per_iteration: int
    seed: int
    checkpoint_every: int
    keep_checkpoints: int
    eval_every: int
    eval_options: dict[str, Any]
    eval_tasks: int | None
    eval_samples: int
    opponents: OpponentsConfig
    env_server: str | Sequence[str] | None = None
    ray: RayConfig = field(default_factory=RayConfig)

    def __post_init__(self) -> None:
        """Check ranges, and that a configuration file can hold the options.

        Raises:
            ConfigError: If a number is below 1, or an option is an object such as a text scorer.
        """
        self.ray.check_read()
        for name in (
            "iterations",
            "tasks_per_iteration",
            "checkpoint_every",
            "keep_checkpoints",
            "eval_samples",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name, value in {**self.env_options, **self.eval_options}.items():
            if not _is_json(value) or hasattr(value, "score_many"):
                raise ConfigError(
                    f"a run keeps its options in config.yaml: describe {name!r} by a name, "
                    f"'module:function', or a mapping, got {value!r}"
                )

    def make_env(self) -> Any:  # noqa: ANN401 - any PettingZoo parallel environment
        """Return the environment of the run, on its servers if it has some."""
        return mlrl_envs.make(self.location, **self.env_options)

    @property
    def location(self) -> str:
        """The id of the environment for `mlrl_envs.make`, with its servers if it has some."""
        return remote_id(self.env_id, self.env_server)

    def as_config(self, learner: Mapping[str, Any]) -> dict[str, Any]:
        """Return the plan and the section of its learner in the form of a configuration file."""
        values = asdict(self)
        env = {
            "id": values.pop("env_id"),
            "options": values.pop("env_options"),
            "server": values.pop("env_server"),
        }
        rollout, opponents = values.pop("rollout"), values.pop("opponents")
        ray = {"ray": values.pop("ray")}
        return {
            "env": env,
            "learner": learner,
            "rollout": rollout,
            "train": values,
            "opponents": opponents,
            **(ray if self.ray.enabled else {}),
        }


@dataclass(frozen=True, slots=True)
class TrainResult:
    """Result of a training run.

    Attributes:
        iterations: Completed iterations, those before a resume included.
        interrupted: Whether the run stopped early on SIGINT or SIGTERM.
        metrics: Metrics of the last iteration of this call; empty if there was none.
        run_dir: Folder of the run.
    """

    iterations: int
    interrupted: bool
    metrics: Mapping[str, float]
    run_dir: Path


def prepare_learner(learner: Learner, plan: TrainPlan) -> None:
    """Check that a learner can follow a plan, and tell it the number of updates.

    Raises:
        ConfigError: If there are several processes and the learner does not share its work, or the
            learner refuses the rollouts or the number of updates.
        ContractError: If the learner lacks a method, or one takes other arguments.
    """
    check_methods(learner)
    check_processes(learner)
    if plan.ray.enabled:
        from mlrl_learners.cluster.team_samplers import check_samplers

        check_samplers(learner, plan.ray, plan.opponents)
        if plan.ray.rollouts:
            _check_environments(plan)
    if hasattr(learner, "check_rollout"):
        learner.check_rollout(plan.rollout)
    if hasattr(learner, "plan_updates"):
        learner.plan_updates(plan.iterations)


def _check_environments(plan: TrainPlan) -> None:
    """Refuse environments that only this process can make; those of a mixture are several."""
    parts = plan.env_options["envs"] if plan.env_id == MIXTURE else ({"id": plan.env_id},)
    for env_id in (part["id"] for part in parts):
        if is_in_memory(env_id):
            raise ConfigError(
                f"processes of ray.rollouts cannot make {env_id!r}, which is in the memory of this "
                "one: give its class or function at the top of a module, or set 0"
            )


def check_processes(learner: Learner) -> None:
    """Refuse several processes for a learner that would repeat the same work in each of them.

    Raises:
        ConfigError: If there are several processes and the learner does not share its work.
    """
    if world().size > 1 and not getattr(learner, "shares_work", False):
        raise ConfigError(
            f"{type(learner).__name__} learns in one process, got {world().size}; start it without "
            "torchrun, or divide its work with mlrl_learners.processes.work_sharing"
        )


def check_agents(learner: Learner, agents: Sequence[AgentID], config: OpponentsConfig) -> None:
    """Check that a learner with an attribute `agents` has all that no opponent plays.

    Raises:
        ConfigError: If it lacks one.
    """
    known = getattr(learner, "agents", None)
    if not isinstance(known, list | tuple):
        return
    lacking = [each for each in agents if each not in known and each not in config.agents]
    if lacking:
        raise ConfigError(
            f"the environment has the agents {', '.join(agents)} and the learner lacks "
            f"{', '.join(lacking)}: make it with agents={list(agents)}"
        )


def draw_of(
    plan: TrainPlan,
    learner: Learner,
    agents: Sequence[AgentID],
    players: Mapping[str, Actor],
    run_dir: Path,
) -> OpponentDraw:
    """Return the draw of a run's opponents.

    Args:
        plan: Arguments of the run.
        learner: The learner.
        agents: Agents of the environment.
        players: Actor of each opponent in the plan besides `latest` and `snapshots`.
        run_dir: Folder of the run, with its snapshots.

    Raises:
        UnknownNameError: If there is no agent of a name.
        ConfigError: If the learner plays nobody that it trains, plays nothing at all, or an
            opponent has no actor.
    """
    config = plan.opponents
    if config.words():
        config.check_agents(agents, trained=getattr(learner, "learning", agents))
        if getattr(learner, "offline", False):
            raise ConfigError("this learner plays no episodes: leave opponents out")
    for word in config.words():
        if word not in (LATEST, SNAPSHOTS, *players):
            raise ConfigError(f"the opponent {word!r} has no actor; players must hold one")
    if config.has_pool and getattr(learner, "is_sharded", False):
        raise ConfigError("snapshots are of whole weights: leave fsdp or snapshots out")
    pool = SnapshotPool(run_dir, learner, config) if config.has_pool else None
    return OpponentDraw(config, agents, actor=learner, players=players, pool=pool, seed=plan.seed)


def _is_json(value: object) -> bool:
    try:
        json.dumps(value, default=asdict)  # an `Endpoint` is described by its fields
    except TypeError:
        return False
    return True
