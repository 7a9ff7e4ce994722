"""A Reddit post for two writers: `summary` is brief, `elaboration` tells it in detail.

Both read the post and write at once, blind to each other.

Agents: `summary`, `elaboration`.
Reward: grounded in (0, 1): what each text is worth by itself (0.25 + 0.35), and for both together
    0.2 ratio of lengths + 0.1 more distinct words + 0.1 transitions, see
    `mlrl_envs.rewards.writing.grounded`; paper in (0, 3), see `mlrl_envs.rewards.writing.paper`.
Data: trl-lib/tldr, CC BY 4.0. M. Völske et al., "TL;DR: Mining Reddit to Learn Automatic
    Summarization", 2017; N. Stiennon et al., "Learning to Summarize from Human Feedback",
    arXiv:2009.01325.

Version history:
    v0: first version.
"""

from typing import Any

from mlrl_envs.datasets.tldr import load_tldr
from mlrl_envs.envs.writing import Brief, WritingConfig, WritingFamily
from mlrl_envs.rewards.writing.tldr import LEVELS, RULES
from mlrl_envs.shell.env import TextParallelEnv, build_env

__all__ = ["BRIEF", "ENV_ID", "parallel_env"]

ENV_ID = "mlrl/tldr-v0"

_SUMMARY = (
    "You write the summary of this post: one to three short sentences, brief and factual, in your "
    "own words. A teammate writes a detailed summary at the same time. Write only the summary."
)
_ELABORATION = (
    "You write the detailed summary of this post: one paragraph of several sentences, two to three "
    "times as long as the brief summary that a teammate writes at the same time. Use your own "
    "words, many different ones, and some transition words. Write only the detailed summary."
)
BRIEF = Brief(
    heading="Reddit post",
    parts={"summary": _SUMMARY, "elaboration": _ELABORATION},
    levels=LEVELS,
    rules=RULES,
)


def parallel_env(**options: Any) -> TextParallelEnv:  # noqa: ANN401  checked against the config
    """Build the environment; options are those of `WritingConfig`, and of the shell."""
    return build_env(ENV_ID, WritingConfig, _family, options)


def _family(config: WritingConfig) -> WritingFamily:
    return WritingFamily(config, BRIEF, load_tldr(config.split, config.path))
