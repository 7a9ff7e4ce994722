"""Rollouts of a team by processes that play whole groups of trees."""

from collections.abc import Sequence

from mlrl_envs.errors import InfraError
from mlrl_learners.algorithms.team import Team
from mlrl_learners.cluster.model_sampler import SampledVersion
from mlrl_learners.cluster.packed_rollouts import unpacked_groups
from mlrl_learners.cluster.worker_pool import WorkerPool
from mlrl_learners.cluster.workers import TreesAnswer, TreesCall
from mlrl_learners.play.groups import Tree, TreeGroup
from mlrl_learners.types import Actor, FailedEpisode, Rollout, RolloutConfig

__all__ = ["TeamRollouts"]

PlayedGroup = tuple[Actor, Sequence[Tree]]  # its player is a team


class TeamRollouts:
    """Plays the groups of a team in the processes of a pool; see `PlaysGroups`.

    Args:
        pool: The processes.
        models: Keys of the models that are trained.
        version: The version that they sample from.
        processes: Number of processes, which get equal shares of the groups.
    """

    def __init__(
        self, pool: WorkerPool, models: Sequence[str], version: SampledVersion, processes: int
    ) -> None:
        self._pool, self._models, self._version = pool, tuple(models), version
        self._processes = processes

    def play(
        self, groups: Sequence[PlayedGroup], config: RolloutConfig, env_id: str
    ) -> list[Sequence[Rollout | FailedEpisode]]:
        """Return the result of each tree of each group, and count the calls of the players.

        Raises:
            Exception: Whatever an environment or a player raised in a process.
        """
        count = min(self._processes, len(groups))
        ends = [number * len(groups) // count for number in range(count + 1)]
        shares = [groups[ends[k] : ends[k + 1]] for k in range(count)]
        answers = self._ask(shares, config, env_id)
        lost = [
            [group]
            for share, answer in zip(shares, answers, strict=True)
            if isinstance(answer, InfraError)
            for group in share
        ]
        # One of the groups of a share that failed may be the reason: each is played by itself.
        again = iter(self._ask(lost, config, env_id) if lost else ())
        found: list[Sequence[Rollout | FailedEpisode]] = []
        for share, answer in zip(shares, answers, strict=True):
            if isinstance(answer, InfraError):
                for group in share:
                    found += self._taken([group], next(again), env_id)
            else:
                found += self._taken(share, answer, env_id)
        return found

    def _ask(
        self, shares: Sequence[Sequence[PlayedGroup]], config: RolloutConfig, env_id: str
    ) -> list[TreesAnswer | InfraError]:
        """Return the answer to each share of the groups, or why there is none."""
        calls = [self._call(each, config, env_id) for each in shares]
        try:
            return self._pool.answer(calls, keep_going=True)
        except InfraError as error:  # of the pool itself
            return [error] * len(calls)

    def _call(self, groups: Sequence[PlayedGroup], config: RolloutConfig, env_id: str) -> TreesCall:
        found = [
            TreeGroup(
                [tree.options for tree in trees],
                [tree.seed for tree in trees],
                _team(player).call_seeds,
                _team(player).min_batches,
            )
            for player, trees in groups
        ]
        version, oldest = self._version.number, min(self._pool.versions, default=0)
        return TreesCall(self._models, version, oldest, found, config, env_id)

    def _taken(
        self, groups: Sequence[PlayedGroup], answer: TreesAnswer | InfraError, env_id: str
    ) -> Sequence[Sequence[Rollout | FailedEpisode]]:
        """Return the results of groups, after what the trainer keeps of their answer."""
        if isinstance(answer, InfraError):
            return [[_failed(tree, answer, env_id) for tree in trees] for _, trees in groups]
        if answer.error is not None:
            raise answer.error
        for (player, _), calls in zip(groups, answer.calls, strict=True):
            _team(player).call_seeds.calls = calls  # a single group is played by the team itself
        self._version.answered += answer.versions
        self._pool.replaced += answer.replaced
        return unpacked_groups(answer.found)


def _failed(tree: Tree, error: InfraError, env_id: str) -> FailedEpisode:
    """Return the failure of a tree that no process could play."""
    task_id = str(tree.options.get("task_index", ""))
    return FailedEpisode(env_id, task_id, tree.seed, type(error).__name__, str(error))


def _team(player: Actor) -> Team:
    assert isinstance(player, Team)  # noqa: S101 - the attribute `remote` is a team's
    return player
