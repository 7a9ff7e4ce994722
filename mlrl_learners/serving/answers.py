"""Answers of a policy server, and their sampling in batches of requests."""

import secrets
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from threading import Event
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mlrl_learners.engine import SampledTokens
from mlrl_learners.engine.sampling import Draw
from mlrl_learners.policies import Policy, StopTexts
from mlrl_learners.seeding import derive_seed
from mlrl_learners.serving.requests import SampleRequest

__all__ = ["Answer", "Job", "ShownToken", "batch_key", "sample_batch"]

Alternatives = tuple[tuple[int, float], ...]


class ShownToken(NamedTuple):
    """One token of an answer.

    Attributes:
        number: Index of the answer within its request.
        token_id: Id of the token.
        logprob: Natural log-probability of the token.
        top: Most likely tokens with their log-probabilities, in descending order.
    """

    number: int
    token_id: int
    logprob: float
    top: Alternatives = ()


@dataclass(frozen=True, slots=True)
class Answer:
    """One complete answer.

    Attributes:
        text: Text, cut before the first stop text.
        token_ids: Token ids, including the token that ended the answer.
        logprobs: Natural log-probability of each token.
        finish_reason: `"stop"` or `"length"`.
        tops: Most likely tokens at each position; empty unless requested.
    """

    text: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: str
    tops: tuple[Alternatives, ...] = ()


@dataclass
class Job:
    """A request that is queued or being sampled.

    Attributes:
        request: The request.
        policy: Policy that answers.
        prompts: Token ids of each prompt.
        show: Called in the sampling thread with each token of a streamed response; None for
            responses that are not streamed.
        cancelled: Set when the client no longer waits.
        version: Version of the weights that the answers were sampled from.
    """

    request: SampleRequest
    policy: Policy
    prompts: Sequence[Sequence[int]]
    show: Callable[[ShownToken], None] | None = None
    cancelled: Event = field(default_factory=Event)
    version: int = 0


def batch_key(job: Job) -> Hashable:
    """Return a key that is equal for jobs that can be sampled in one batch."""
    asked = job.request
    options = (asked.num_samples, asked.greedy, asked.stop_token_ids)
    return (id(job.policy.engine), asked.sampling, *options)


def sample_batch(jobs: Sequence[Job], max_rows: int) -> list[list[Answer]]:
    """Sample the answers of several jobs in one call of the engine.

    The random numbers of an answer depend only on its request, not on the rest of the batch.

    Args:
        jobs: Jobs with the same `batch_key`, at least one.
        max_rows: Maximum number of sequences decoded at once.

    Returns:
        The answers of each job, grouped by prompt.
    """
    first, policy = jobs[0].request, jobs[0].policy
    stops = StopTexts(policy.tokenizer, first.sampling.stop)
    watch = _Watch(jobs) if any(_is_watched(job) for job in jobs) else None
    sampled = policy.engine.sample(
        [prompt for job in jobs for prompt in job.prompts],
        first.num_samples,
        first.sampling,
        eos_ids=sorted({*policy.eos_ids, *first.stop_token_ids}),
        seeds=None if first.greedy else [seed for job in jobs for seed in _seeds(job.request)],
        max_rows=max_rows,
        adapters=[job.policy.adapter for job in jobs for _ in job.prompts],
        texts=stops if first.sampling.stop else None,
        watch=watch,
    )
    groups = iter(sampled)
    found = []
    for number, job in enumerate(jobs):
        tokens = [answer for _ in job.prompts for answer in next(groups)]
        tops = watch.tops[number] if watch is not None else [[] for _ in tokens]
        found.append(
            [_answer(job, each, top, stops) for each, top in zip(tokens, tops, strict=True)]
        )
    return found


def _is_watched(job: Job) -> bool:
    return job.show is not None or bool(job.request.num_top)


def _seeds(request: SampleRequest) -> list[int]:
    """Return one seed per prompt of a request."""
    seed = secrets.randbits(63) if request.seed is None else request.seed
    return [derive_seed(seed, number) for number in range(len(request.prompts))]


def _answer(
    job: Job, sampled: SampledTokens, tops: Sequence[Alternatives], stops: StopTexts
) -> Answer:
    ids = list(sampled.token_ids)
    text: str = job.policy.tokenizer.decode(ids, skip_special_tokens=True)
    reason = "stop" if sampled.ended else "length"
    return Answer(stops.cut(text), sampled.token_ids, sampled.logprobs, reason, tuple(tops))


class _Watch:
    """Sends tokens to streams and collects the most likely tokens while a batch is sampled.

    Args:
        jobs: Jobs of the batch.

    Attributes:
        tops: For each job and each of its answers, the most likely tokens at each position.
    """

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs
        self._places = [
            (number, p) for number, job in enumerate(jobs) for p in range(len(job.prompts))
        ]
        self._num_top = max(job.request.num_top or 0 for job in jobs)
        self._temperature = jobs[0].request.sampling.temperature
        self._num_samples = jobs[0].request.num_samples
        self.tops: list[list[list[Alternatives]]] = [
            [[] for _ in range(job.request.num_answers)] for job in jobs
        ]

    def see(self, answers: Sequence[tuple[int, int]], draw: Draw, logits: Tensor) -> None:
        """Record one sampled token of each answer.

        Args:
            answers: Prompt and sample index of each answer.
            draw: Sampled token of each answer.
            logits: Logits of each answer, `[B, V]`.
        """
        tokens, logprobs = draw.tokens.tolist(), draw.logprobs.tolist()
        likeliest = self._likeliest(logits)
        rows = zip(answers, tokens, logprobs, likeliest, strict=True)
        for (row, sample), token_id, logprob, top in rows:
            number, prompt = self._places[row]
            job = self._jobs[number]
            place = prompt * self._num_samples + sample
            kept = top[: job.request.num_top or 0]
            if kept:
                self.tops[number][place].append(kept)
            if job.show is not None and not job.cancelled.is_set():
                job.show(ShownToken(place, token_id, logprob, kept))

    def _likeliest(self, logits: Tensor) -> list[Alternatives]:
        """Return the most likely tokens of each row of logits, `[B, V]`."""
        if not self._num_top:
            return [()] * len(logits)
        scaled = logits.float() / self._temperature
        top, ids = torch.log_softmax(scaled, -1).topk(min(self._num_top, scaled.shape[-1]), -1)
        pairs: Any = zip(ids.tolist(), top.tolist(), strict=True)
        return [tuple(zip(*row, strict=True)) for row in pairs]
