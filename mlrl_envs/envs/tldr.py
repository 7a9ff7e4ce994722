"""Summaries of a Reddit post in two lengths.

Both agents read the post and write at the same time without reading each other's text. For
observations and actions see `mlrl_envs.envs.writing`.

Agents:
    `summary` writes one to three short sentences. `elaboration` writes a detailed summary, two to
    three times as long.

Reward:
    Both agents receive the same reward. With `grounded` an episode is solved from 0.75 on, with
    `paper` at 2.98, the highest sum that can be reached.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | 0.3 and 0.4 for the texts, 0.15 length, 0.15 division |
    | `judged` | 0 to 1 | the same, with each text times its score by `scorer` |
    | `paper` | 0 to 3 | structure 0.5, then length 1, then vocabulary 0.5, then style 1 |

    `facts=True` lowers a text's score for numbers and names that the post lacks, `assignment=True`
    for sentences about the assignment or to the reader. See `mlrl_envs.rewards.writing.grounded`
    and `mlrl_envs.rewards.writing.paper`. Division is the share of the elaboration's words that the
    summary does not have.

Data:
    trl-lib/tldr, CC BY 4.0. M. Völske et al., "TL;DR: Mining Reddit to Learn Automatic
    Summarization", 2017; N. Stiennon et al., "Learning to Summarize from Human Feedback",
    arXiv:2009.01325. There are no reference answers. See `mlrl_envs.datasets.tldr`.

Version history:
    v1: Relevance by contrast with other posts, `reward="judged"`. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/tldr-v1", split="sample", reward="paper")
    observations, infos = env.reset(seed=0)
    observations, rewards, *_ = env.step({"summary": "A goat.", "elaboration": "A goat ate it."})
    assert rewards == {"summary": 0.0, "elaboration": 0.0}  # fewer than eight tokens
"""

from typing import ClassVar

from mlrl_envs.datasets.tldr import load_tldr
from mlrl_envs.envs.writing import Brief, WritingConfig, WritingFamily
from mlrl_envs.rewards.writing.tldr import LEVELS, RULES
from mlrl_envs.tasks import WritingTask

__all__ = ["TldrFamily", "parallel_env"]

_SUMMARY = (
    "You write the summary of this post: one to three short sentences, brief and factual, in your "
    "own words. A teammate writes a detailed summary at the same time. Write only the summary."
)
_ELABORATION = (
    "You write the detailed summary of this post: one paragraph of several sentences, two to three "
    "times as long as the brief summary that a teammate writes at the same time. Use your own "
    "words, many different ones, and some transition words. Write only the detailed summary."
)


class TldrFamily(WritingFamily):
    """Summaries of a post for `summary` and `elaboration`."""

    env_id: ClassVar[str] = "mlrl/tldr-v1"
    brief: ClassVar[Brief] = Brief(
        heading="Reddit post",
        parts={"summary": _SUMMARY, "elaboration": _ELABORATION},
        levels=LEVELS,
        rules=RULES,
    )

    @classmethod
    def load_tasks(cls, config: WritingConfig) -> tuple[WritingTask, ...]:
        """Return the posts of the split."""
        return load_tldr(config.split, config.path)


parallel_env = TldrFamily.make_env
