"""Reddit posts to summarise (CC BY 4.0, from OpenAI's summarize-from-feedback).

Rows come from `trl-lib/tldr`: `train` is the first thousand rows of its train split, `eval` the
first thousand of its test split, `all` every row. For a local file see
`mlrl_envs.datasets.writing`. Only the post is used (`prompt`, which ends with "TL;DR:"), not the
human summary. Rows have no id on the hub; the id of a task is a hash of its post.

Source: N. Stiennon et al., "Learning to Summarize from Human Feedback", arXiv:2009.01325;
M. Völske et al., "TL;DR: Mining Reddit to Learn Automatic Summarization", 2017.
"""

import hashlib

from mlrl_envs.datasets.sources import DataSource, Row
from mlrl_envs.datasets.writing import load_writing
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import WritingTask

__all__ = ["HUB_SPLITS", "SOURCE", "load_tldr", "parse_row"]

SOURCE = DataSource(
    file="tldr",
    fields=("prompt",),
    hub="trl-lib/tldr",
    # The revision that several public projects pin; its train split has 116722 rows.
    revision="21233da376667088e6eb1ce4ce19ed832c2935d3",
    hub_split="train+validation+test",
)
HUB_SPLITS = {"train": "train[:1000]", "eval": "test[:1000]", "all": SOURCE.hub_split}


def load_tldr(split: str = "train", path: str | None = None) -> tuple[WritingTask, ...]:
    """Return the tasks of `train`, `eval`, `all` or `sample`; see `sources`."""
    return load_writing(SOURCE, parse_row, split=split, hub_splits=HUB_SPLITS, path=path)


def parse_row(row: Row) -> WritingTask:
    """Convert a row to a task.

    Raises:
        InvalidDataError: If the post is not a text or is empty.
    """
    post = row["prompt"]
    if not isinstance(post, str) or not post.strip():
        raise InvalidDataError(f"a row of tldr has no post, but {post!r}")
    digest = hashlib.sha256(post.encode("utf-8", "surrogatepass")).hexdigest()
    return WritingTask(f"tldr/{digest[:12]}", post)
