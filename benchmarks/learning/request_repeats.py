"""The share of a request that answers repeat, for transcripts of results and of runs.

    python -m benchmarks.learning.request_repeats FILE [FILE ...] [--env mlrl/story-v1] [--json]

A file is the transcripts of a result (`*.episodes.jsonl.gz`) or `evaluations.jsonl` of a run, of
which every evaluation is a row. The request is the first line of an observation. Repeating it is
cheap, and a reward that asks for the topic may pay for it.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.auditing.scene import sentences
from mlrl_envs.rewards.prose.words import content_of, ngrams, words_of
from mlrl_learners.figures.means import mean

__all__ = ["main", "repeats"]

RUN = 4  # words in a row that chance hardly repeats

Episode = Mapping[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    """Print a table with a row for each group of episodes; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning.request_repeats",
                                     description=__doc__.splitlines()[0])  # fmt: skip
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="files of transcripts")
    parser.add_argument("--env", default="mlrl/story-v1", help="environment of the episodes")
    parser.add_argument("--json", action="store_true", help="print rows as JSON")
    given = parser.parse_args(argv)
    rows = []
    for file in given.files:
        try:
            rows += [{"episodes of": name, **repeats(group)} for name, group in
                     _groups(file, given.env) if group]  # fmt: skip
        except (OSError, ValueError, KeyError) as error:
            print(f"cannot read {str(file)!r}: {error}", file=sys.stderr)
            return 2
    if not rows:
        print(f"no episodes of {given.env} in these files", file=sys.stderr)
        return 1
    print(json.dumps(rows, indent=1) if given.json else _table(rows))
    return 0


def repeats(episodes: Sequence[Episode]) -> dict[str, float]:
    """Return what the last answers of all agents repeat of their requests, means over answers.

    Args:
        episodes: At least one episode with its `return` and `turns`, which have `observations` and
            `actions`.

    Returns:
        `return`; `four words in a row`, the share of answers with four words of the request in a
        row; `words in the first sentence`, the share of the request's content words that the first
        sentence of an answer has.

    Raises:
        ValueError: If an episode has no observations.
    """
    last = [episode["turns"][-1] for episode in episodes]
    if any("observations" not in turn for turn in last):
        raise ValueError(
            "its episodes have no prompts, which are published only if the licence of the data "
            "allows it (show_prompts of a suite)"
        )
    pairs = [
        (str(turn["observations"][agent]).strip().partition("\n")[0], str(answer))
        for turn in last
        for agent, answer in turn["actions"].items()
    ]
    return {
        "return": mean([float(episode["return"]) for episode in episodes]),
        "four words in a row": mean([_has_run(*pair) for pair in pairs]),
        "words in the first sentence": mean([_share_in_first(*pair) for pair in pairs]),
    }


def _has_run(request: str, answer: str) -> float:
    runs = [set(ngrams(words_of(text), RUN)) for text in (request, answer)]
    return float(bool(runs[0] & runs[1]))


def _share_in_first(request: str, answer: str) -> float:
    asked = set(content_of(request)[1:])  # without the instruction, such as "Tell"
    first = set(content_of((sentences(answer) or [""])[0]))
    return len(asked & first) / max(1, len(asked))


def _groups(file: Path, env: str) -> Iterator[tuple[str, list[Episode]]]:
    """Yield the episodes of a result, or of each evaluation of a run, with a name."""
    records = [json.loads(line) for line in _content(file).splitlines()]
    episodes = [each for each in records if str(each.get("entry", "")).partition(":")[0] == env]
    yield file.name.partition(".")[0], episodes
    for record in records:
        if record.get("env_id") == env and "episodes" in record:
            yield f"{file.parent.name}, iteration {record['iteration']}", record["episodes"]


def _content(file: Path) -> bytes:
    read = file.read_bytes()
    if file.suffix == ".gz":
        return gzip.decompress(read)
    complete, _, last = read.rpartition(b"\n")
    try:
        json.loads(last)
    except ValueError:  # the last line of a live run may not be finished
        return complete
    return read


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(rows[0])
    cells = [[row[names[0]], *(f"{row[name]:.2f}" for name in names[1:])] for row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in [names, ["---"] * len(names), *cells])


if __name__ == "__main__":
    raise SystemExit(main())
