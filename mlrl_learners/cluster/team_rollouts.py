"""Rollouts of a team by processes that play whole groups of trees."""

from collections.abc import Sequence

from mlrl_envs.errors import InfraError
from mlrl_learners.algorithms.team import Team
from mlrl_learners.cluster.model_sampler import SampledVersion
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
        try:
            answers = self._pool.answer([self._call(each, config, env_id) for each in shares])
        except InfraError:
            return [found for each in groups for found in self._alone(each, config, env_id)]
        return [
            found
            for share, answer in zip(shares, answers, strict=True)
            for found in self._taken(share, answer)
        ]

    def _alone(
        self, group: PlayedGroup, config: RolloutConfig, env_id: str
    ) -> Sequence[Sequence[Rollout | FailedEpisode]]:
        """Play one group, as another one ends its processes; if it is this one, its trees fail."""
        try:
            (answer,) = self._pool.answer([self._call([group], config, env_id)])
        except InfraError as error:
            kind = type(error).__name__
            return [
                [
                    FailedEpisode(
                        env_id, str(tree.options.get("task_index", "")), tree.seed, kind, str(error)
                    )
                    for tree in group[1]
                ]
            ]
        return self._taken([group], answer)

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
        self, groups: Sequence[PlayedGroup], answer: TreesAnswer
    ) -> Sequence[Sequence[Rollout | FailedEpisode]]:
        """Return the results of groups, after what the trainer keeps of their answer."""
        if answer.error is not None:
            raise answer.error
        for (player, _), calls in zip(groups, answer.calls, strict=True):
            _team(player).call_seeds.calls = calls  # a single group is played by the team itself
        self._version.answered += answer.versions
        self._pool.replaced += answer.replaced
        return answer.found


def _team(player: Actor) -> Team:
    assert isinstance(player, Team)  # noqa: S101 - the attribute `remote` is a team's
    return player
