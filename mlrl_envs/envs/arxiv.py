"""Introductions of a paper, written by two agents from its abstract.

Both agents read the abstract and write at the same time without reading each other's text; each is
told not to repeat what the other covers. For observations and actions see
`mlrl_envs.envs.writing`.

Agents:
    `background` writes what is known, what is open and why it matters. `complementary` writes the
    methodology and the implications.

Reward:
    Both agents receive the same reward. With `grounded` an episode is solved from 0.75 on, with
    `paper` at 2.98, the highest sum that can be reached.

    | mode | range | reward of a turn |
    |---|---|---|
    | `grounded` | 0 to 1 | 0.35 and 0.35 for the texts, 0.15 length, 0.15 division |
    | `judged` | 0 to 1 | the same, with each text times its score by `scorer` |
    | `paper` | 0 to 3 | structure 0.5, then length 1, then vocabulary 0.5, then style 1 |

    `facts=True` lowers a text's score for numbers and names that the abstract lacks,
    `assignment=True` for sentences about the assignment or to the reader. See
    `mlrl_envs.rewards.writing.grounded` and `mlrl_envs.rewards.writing.paper`. Division is the
    share of the second text's words that the first does not have.

Data:
    OpenMLRL/arXiv_abstract, abstracts of 100 to 300 words, CC0 1.0 (arXiv's metadata). A. Cohan et
    al., "A Discourse-Aware Attention Model for Abstractive Summarization of Long Documents",
    arXiv:1804.05685. There are no reference answers. See `mlrl_envs.datasets.arxiv`.

Version history:
    v1: Relevance by contrast with other abstracts, `reward="judged"`. Replaces v0.

Example:
    env = mlrl_envs.make("mlrl/arxiv-v1", split="sample", reward="paper")
    observations, infos = env.reset(seed=0)
    text = "It is well known that this is an open question. " * 15
    observations, rewards, *_, infos = env.step({"background": text, "complementary": text})
    assert infos["background"]["components"]["structure"] == 0.5
"""

from typing import ClassVar

from mlrl_envs.datasets.arxiv import load_arxiv
from mlrl_envs.envs.writing import Brief, WritingConfig, WritingFamily
from mlrl_envs.rewards.writing.arxiv import LEVELS, RULES
from mlrl_envs.tasks import WritingTask

__all__ = ["ArxivFamily", "parallel_env"]

_BACKGROUND = (
    "Two writers expand this abstract to the introduction of a paper, at the same time. You write "
    "the background and motivation: what is known, what is open, and why it matters. Your teammate "
    "writes the methodology and the implications; do not repeat these. Write 130 to 180 words of "
    "plain prose in your own words, and nothing else."
)
_COMPLEMENTARY = (
    "Two writers expand this abstract to the introduction of a paper, at the same time. You write "
    "the methodology and the implications: how the work is done, what it finds, and what follows. "
    "Your teammate writes the background and motivation; do not repeat these. Write 180 to 250 "
    "words of plain prose in your own words, and nothing else."
)


class ArxivFamily(WritingFamily):
    """Introductions of a paper for `background` and `complementary`."""

    env_id: ClassVar[str] = "mlrl/arxiv-v1"
    brief: ClassVar[Brief] = Brief(
        heading="Scientific abstract",
        parts={"background": _BACKGROUND, "complementary": _COMPLEMENTARY},
        levels=LEVELS,
        rules=RULES,
    )

    @classmethod
    def load_tasks(cls, config: WritingConfig) -> tuple[WritingTask, ...]:
        """Return the abstracts of the split."""
        return load_arxiv(config.split, config.path)


parallel_env = ArxivFamily.make_env
