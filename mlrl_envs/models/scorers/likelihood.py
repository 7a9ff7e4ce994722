"""Text scorers that measure how probable a text is for a causal language model.

- `LikelihoodScorer`: the mean log-probability of a token in the least probable third of the text,
  each sentence alone. Word salad is improbable, whatever words it has.
- `ContrastScorer`: the same, minus that of the text with its words or sentences in another order.
  A list of keywords or of unrelated sentences has no order to lose.
- `RelevanceScorer`: the gain of the mean log-probability from reading the source first, minus the
  gain from reading another task's source. A text that fits any source gains nothing.

All are calibrated (`mlrl_envs.models.scorers.calibration`). None of them can tell whether a
statement is true.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlrl_envs.config import check_choice
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.models.scorers.calibration import (
    Calibration,
    as_calibration,
    shuffled_sentences,
    shuffled_words,
)
from mlrl_envs.models.scorers.loading import LoadedModel, ModelScorer
from mlrl_envs.models.smollm2 import SMOLLM2
from mlrl_envs.types import TextToScore

__all__ = ["ContrastScorer", "LikelihoodScorer", "RelevanceScorer"]

MAX_TOKENS = 2048
MIN_WORDS, MAX_WORDS = 12, 40
WORST = 1 / 3  # share of a text, its least probable sentences, that `LikelihoodScorer` counts


@dataclass(frozen=True)
class _CalibratedScorer(ModelScorer):
    """A scorer whose raw measure is mapped to [0, 1].

    Attributes:
        calibration: A `Calibration`, or a mapping or sequence with its fields; None uses
            the constants of this project for the model.
    """

    CALIBRATIONS: ClassVar[Mapping[str, Calibration]] = {}

    calibration: Calibration | Mapping[str, float] | Sequence[float] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        name = self._calibration_name()
        if self.calibration is not None:
            object.__setattr__(self, "calibration", as_calibration(self.calibration))
        elif name in self.CALIBRATIONS:
            object.__setattr__(self, "calibration", self.CALIBRATIONS[name])
        else:
            raise InvalidArgumentError(
                f"{type(self).__name__} has no constants for {name!r}: pass calibration=(low, high)"
                ", which mlrl_envs.models.scorers.calibrate computes from texts"
            )

    def _calibration_name(self) -> str:
        return self.model

    @abstractmethod
    def raw(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the measure of each text before calibration; -inf for an empty text.

        Raises:
            ScorerError: If the model cannot be loaded or run.
        """

    def compute(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the calibrated measure of each text."""
        calibration = as_calibration(self.calibration)
        return [calibration.score(raw) for raw in self.raw(batch)]

    def log_probs(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the mean log-probability of a token of each text after its prefix.

        Args:
            pairs: Prefixes, which may be empty, and texts.

        Raises:
            ScorerError: If the model cannot be loaded or run.
        """
        loaded = self.load()
        rows = [_row(loaded, *pair) for pair in pairs]
        found = [-math.inf] * len(rows)
        filled = [index for index, (ids, start) in enumerate(rows) if len(ids) > start]
        with self.running():
            for batch in self.batches([len(rows[index][0]) for index in filled]):
                chosen = [filled[index] for index in batch]
                for index, mean in zip(
                    chosen, _means(loaded, [rows[i] for i in chosen]), strict=True
                ):
                    found[index] = mean
        return found


@dataclass(frozen=True)
class LikelihoodScorer(_CalibratedScorer):
    """Mean log-probability of a token in the least probable third of a text, calibrated.

    Sentences are scored alone, in pieces of about 12 to 40 words: a model that reads the text
    before a sentence predicts repeated words and phrases well, so that templates and repetitions
    would score above human texts. The least probable pieces count, up to a third of the tokens: a
    fluent sentence must not pay for word salad beside it. Reads `text` only.
    """

    VERSION: ClassVar[int] = 2
    CALIBRATIONS: ClassVar[Mapping[str, Calibration]] = {SMOLLM2: Calibration(-6.7, -6.15)}

    def raw(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the mean log-probability of a token in the worst third of each text, in nats."""
        loaded = self.load()
        pieces = [_pieces(each.text) for each in batch]
        lengths = [[len(loaded.ids(piece)) for piece in found] for found in pieces]
        # On a CPU a text is a batch of its own, so that its score does not depend on others, even
        # in bfloat16; a GPU needs large batches.
        together = [pieces] if loaded.device.type != "cpu" else [[found] for found in pieces]
        means = iter(
            mean
            for group in together
            for mean in self.log_probs([("", piece) for found in group for piece in found])
        )
        return [_worst([(next(means), length) for length in found]) for found in lengths]


@dataclass(frozen=True)
class ContrastScorer(_CalibratedScorer):
    """Mean log-probability of a text minus that of its shuffled copies, calibrated.

    Reads `text` only.

    Attributes:
        unit: What is shuffled: `"words"` or `"sentences"`.
        shuffles: Number of shuffled copies, at least 1; the order depends on the text only.
    """

    CALIBRATIONS: ClassVar[Mapping[str, Calibration]] = {
        f"{SMOLLM2}, words": Calibration(0.3, 1.5),
        f"{SMOLLM2}, sentences": Calibration(0.0, 0.1),
    }

    unit: str = "words"
    shuffles: int = 1

    def __post_init__(self) -> None:
        """Check types and ranges; see `ModelScorer`."""
        check_choice("unit", self.unit, ("words", "sentences"))
        _check_count("shuffles", self.shuffles)
        super().__post_init__()

    def _calibration_name(self) -> str:
        return f"{self.model}, {self.unit}"

    def raw(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the difference of the mean log-probabilities of a token, in nats."""
        shuffle = shuffled_words if self.unit == "words" else shuffled_sentences
        copies = range(self.shuffles)
        texts = [each.text for each in batch]
        texts += [shuffle(each.text, number) for each in batch for number in copies]
        found = self.log_probs([("", text) for text in texts])
        own, shuffled = found[: len(batch)], found[len(batch) :]
        return [
            mean - math.fsum(shuffled[index * len(copies) :][: len(copies)]) / len(copies)
            if math.isfinite(mean)
            else mean
            for index, mean in enumerate(own)
        ]


@dataclass(frozen=True)
class RelevanceScorer(_CalibratedScorer):
    """Gain of a text's mean log-probability from its source, minus that from other sources.

    Reads `text`, `source` and `others`. Without `others`, the gain is taken against reading no
    source.

    Attributes:
        max_others: Number of other sources that are read, from the first, at least 1.
    """

    CALIBRATIONS: ClassVar[Mapping[str, Calibration]] = {SMOLLM2: Calibration(0.1, 0.35)}

    max_others: int = 1

    def __post_init__(self) -> None:
        """Check types and ranges; see `ModelScorer`."""
        _check_count("max_others", self.max_others)
        super().__post_init__()

    def raw(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the difference of the mean log-probabilities of a token, in nats."""
        pairs, counts = [], []
        for each in batch:
            sources = each.others[: self.max_others] or ("",)
            pairs += [(source, each.text) for source in (each.source, *sources)]
            counts.append(len(sources))
        found = iter(self.log_probs(pairs))
        raw = []
        for count in counts:
            own, *others = [next(found) for _ in range(1 + count)]
            raw.append(own - math.fsum(others) / count if math.isfinite(own) else own)
        return raw


def _pieces(text: str) -> list[str]:
    """Return the sentences of a text, in pieces of about 12 to 40 words.

    Short sentences are joined, because the first tokens of a piece are improbable in any text.
    """
    found: list[str] = []
    words: list[str] = []
    for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
        words += sentence.split()
        if len(words) >= MIN_WORDS:
            starts = range(0, len(words), MAX_WORDS)
            found += [" ".join(words[start : start + MAX_WORDS]) for start in starts]
            words = []
    rest = " ".join(words)
    if rest and found and len(found[-1].split()) + len(words) <= MAX_WORDS:
        found[-1] += f" {rest}"
    elif rest:
        found.append(rest)
    return found


def _worst(pieces: Sequence[tuple[float, int]]) -> float:
    """Return the mean of the lowest third of the tokens, from the mean and length of each piece."""
    total = left = WORST * sum(length for _, length in pieces)
    found = 0.0
    for mean, length in sorted(pieces):
        counted = min(length, left)
        found += mean * counted if counted else 0.0
        left -= counted
    return found / total if total else -math.inf


def _check_count(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise InvalidArgumentError(f"{name} must be an int of at least 1, got {value!r}")


def _row(loaded: LoadedModel, prefix: str, text: str) -> tuple[list[int], int]:
    """Return the tokens of a prefix and a text, and the number of tokens of the prefix."""
    limit = min(MAX_TOKENS, loaded.max_tokens)
    tokenizer = loaded.tokenizer
    start = tokenizer.bos_token_id if tokenizer.bos_token_id is not None else tokenizer.eos_token_id
    ids = loaded.ids(text)[: limit - 1]
    before = loaded.ids(f"{prefix}\n\n")[: limit - 1 - len(ids)] if prefix else []
    return [start, *before, *ids], 1 + len(before)


def _means(loaded: LoadedModel, rows: Sequence[tuple[list[int], int]]) -> list[float]:
    """Return the mean log-probability of a token of each text, from one forward pass."""
    import torch

    longest = max(len(ids) for ids, _ in rows)
    padded = torch.tensor([ids + [0] * (longest - len(ids)) for ids, _ in rows])
    mask = torch.tensor([[1] * len(ids) + [0] * (longest - len(ids)) for ids, _ in rows])
    inputs, mask = padded.to(loaded.device), mask.to(loaded.device)
    logits = loaded.model(input_ids=inputs, attention_mask=mask, use_cache=False).logits
    means = []
    for row, (ids, start) in enumerate(rows):
        # One row at a time, because the vocabulary makes logits large.
        predicted, wanted = (
            logits[row, start - 1 : len(ids) - 1].float(),
            inputs[row, start : len(ids)],
        )
        means.append(-torch.nn.functional.cross_entropy(predicted, wanted).item())
    return means
