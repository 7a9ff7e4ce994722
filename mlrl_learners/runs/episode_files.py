"""Evaluations from files of single episodes: those of `evaluate --episodes` and of suites.

Such a file has one episode a line and no figures; the figures are computed from the episodes.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from mlrl_learners.figures.bootstrap import bootstrap_interval
from mlrl_learners.figures.means import mean
from mlrl_learners.runs.evaluations import StoredEvaluation
from mlrl_learners.runs.stored import Record, StoredEpisode, decode_episode

__all__ = ["decode_single", "evaluations_of"]

KEPT = 200  # episodes of an environment that are kept for transcripts


def decode_single(record: Record) -> tuple[str, StoredEpisode]:
    """Return the split of an episode, empty if the line does not say, and the episode.

    Raises:
        KeyError: If the record is a rollout tree, or an episode without a return.
    """
    split = record.get("split") or str(record.get("entry") or "").partition(":")[2]
    return str(split), decode_episode(record)


def evaluations_of(episodes: Iterable[tuple[str, StoredEpisode]]) -> list[StoredEvaluation]:
    """Return an evaluation for each environment and split, in the order of the file."""
    groups: dict[tuple[str, str], list[StoredEpisode]] = {}
    for split, episode in episodes:
        groups.setdefault((episode.env_id, split), []).append(episode)
    return [_evaluation(env_id, split, found) for (env_id, split), found in groups.items()]


def _evaluation(env_id: str, split: str, episodes: Sequence[StoredEpisode]) -> StoredEvaluation:
    by_task: dict[str, list[float]] = defaultdict(list)
    for episode in episodes:
        by_task[episode.task_id or str(episode.seed)].append(episode.team_return)
    means = [mean(values) for values in by_task.values()]
    return StoredEvaluation(
        iteration=0,
        env_id=env_id,
        split=split,
        seed=None,
        mean_return=mean(means),
        interval=bootstrap_interval(means, seed=0),
        solved_rate=mean([float(episode.solved) for episode in episodes]),
        components={},
        episodes=tuple(episodes[:KEPT]),
    )
