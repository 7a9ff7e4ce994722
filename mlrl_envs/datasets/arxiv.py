"""Abstracts of arXiv papers with 100 to 300 words (CC0 1.0, arXiv's metadata).

Rows come from `OpenMLRL/arXiv_abstract`: `train` is the first thousand rows of its train split,
`eval` the first thousand of its split val, `all` every row. For a local file see
`mlrl_envs.datasets.writing`. All rows are kept, regardless of their length.

Source: OpenMLRL/arXiv_abstract, whose rows were taken from A. Cohan et al., "A Discourse-Aware
Attention Model for Abstractive Summarization of Long Documents", arXiv:1804.05685.
"""

from mlrl_envs.datasets.sources import DataSource, Row
from mlrl_envs.datasets.writing import load_writing
from mlrl_envs.errors import InvalidDataError
from mlrl_envs.tasks import WritingTask

__all__ = ["HUB_SPLITS", "SOURCE", "load_arxiv", "parse_row"]

SOURCE = DataSource(
    file="arxiv_abstract",
    fields=("article_id", "abstract_text", "token_count"),
    hub="OpenMLRL/arXiv_abstract",
    # The revision that a public project pins; its train split has 140313 rows.
    revision="eac142a6550fff91bb1fb717c43ad3af3253ff48",
    hub_split="train+val+test",
)
HUB_SPLITS = {"train": "train[:1000]", "eval": "val[:1000]", "all": SOURCE.hub_split}


def load_arxiv(split: str = "train", path: str | None = None) -> tuple[WritingTask, ...]:
    """Return the tasks of `train`, `eval` (or `val`), `all` or `sample`; see `sources`."""
    split = "eval" if split == "val" else split
    return load_writing(SOURCE, parse_row, split=split, hub_splits=HUB_SPLITS, path=path)


def parse_row(row: Row) -> WritingTask:
    """Convert a row to a task.

    Raises:
        InvalidDataError: If the abstract is not a text or is empty.
    """
    abstract = row["abstract_text"]
    if not isinstance(abstract, str) or not abstract.strip():
        raise InvalidDataError(f"row {row['article_id']} of arxiv_abstract has no abstract")
    return WritingTask(f"arxiv/{row['article_id']}", abstract.strip())
