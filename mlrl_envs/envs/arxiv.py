"""A scientific abstract for two writers, who expand it to the introduction of a paper.

`background` writes what is known, what is open and why it matters; `complementary` writes how the
work was done and what follows from it. Both read the abstract and write at once, blind to each
other, and each is told not to repeat what the other covers.

Agents: `background`, `complementary`.
Reward: grounded in (0, 1): what each text is worth by itself (0.3 + 0.3), and for both together
    0.2 ratio of lengths + 0.1 division of labour + 0.1 transitions, see
    `mlrl_envs.rewards.writing.grounded`; paper in (0, 3), see `mlrl_envs.rewards.writing.paper`.
Data: OpenMLRL/arXiv_abstract, abstracts of 100 to 300 words, CC0 1.0 (arXiv's metadata). A. Cohan
    et al., "A Discourse-Aware Attention Model for Abstractive Summarization of Long Documents",
    arXiv:1804.05685.

Version history:
    v0: first version.
"""

from typing import Any

from mlrl_envs.datasets.arxiv import load_arxiv
from mlrl_envs.envs.writing import Brief, WritingConfig, WritingFamily
from mlrl_envs.rewards.writing.arxiv import LEVELS, RULES
from mlrl_envs.shell.env import TextParallelEnv, build_env

__all__ = ["BRIEF", "ENV_ID", "parallel_env"]

ENV_ID = "mlrl/arxiv-v0"

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
BRIEF = Brief(
    heading="Scientific abstract",
    parts={"background": _BACKGROUND, "complementary": _COMPLEMENTARY},
    levels=LEVELS,
    rules=RULES,
)


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `WritingConfig`, and of the shell."""
    return build_env(ENV_ID, WritingConfig, _family, options)


def _family(config: WritingConfig) -> WritingFamily:
    return WritingFamily(config, BRIEF, load_arxiv(config.split, config.path))
