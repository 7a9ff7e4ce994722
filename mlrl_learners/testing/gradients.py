"""Gradients of policy-gradient methods on toys: what an update steps along, and the closed form.

The return J of a toy depends on the weights only through the probabilities p of picking 1, one for
each policy and text that it reads: grad J = sum of dJ/dp * grad p. The slopes dJ/dp are known
exactly. Those of a method are read off its mean gradient over many sampled rollouts, by least
squares on the vectors grad p. A method without bias has the exact slopes, up to one factor that its
loss and its baseline choose.

Covers the policy-gradient methods of this package, with answers of one
token that are drawn at temperature 1 from the whole vocabulary.
"""

import contextlib
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mlrl_learners.errors import ConfigError
from mlrl_learners.play.rollout import collect_rollouts
from mlrl_learners.testing.toys import Toy, ToyEnv, expected_return, pick_of
from mlrl_learners.types import AgentID, Rollout, RolloutConfig

if TYPE_CHECKING:
    from mlrl_learners.algorithms.actor_critic import ActorCritic
    from mlrl_learners.algorithms.magrpo import Magrpo

    PolicyGradientLearner = Magrpo | ActorCritic

__all__ = ["Slopes", "measure_slopes", "play_toy", "update_gradient"]

Key = tuple[str, tuple[int, ...]]
"""A policy's name, and the prompt that it reads."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """Slopes dJ/dp of the return of a toy: the exact ones, and those that a method follows.

    Attributes:
        exact: In the order of first reading.
        found: Means over updates.
        errors: Standard errors of `found`.
    """

    exact: tuple[float, ...]
    found: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def scale(self) -> float:
        """The factor that brings the exact slopes nearest to those found."""
        square = math.fsum(value**2 for value in self.exact)
        if not square:
            return 1.0
        return math.fsum(f * e for f, e in zip(self.found, self.exact, strict=True)) / square

    @property
    def error(self) -> float:
        """Distance of the slopes found from the scaled exact ones, over the length of these.

        2 where the method goes the wrong way.
        """
        length = math.hypot(*self.exact)
        if not length:  # there is nothing to learn: any slope is an error
            return math.hypot(*self.found)
        if self.scale <= 0:
            return 2.0
        rest = [f / self.scale - e for f, e in zip(self.found, self.exact, strict=True)]
        return math.hypot(*rest) / length

    @property
    def standard_error(self) -> float:
        """Standard error of the slopes found, in the unit of `error`."""
        length = math.hypot(*self.exact)
        unit = abs(self.scale) * length if length else 1.0
        return math.hypot(*self.errors) / unit if unit else math.inf


def play_toy(
    toy: Toy,
    learner: "PolicyGradientLearner",
    num_rollouts: int,
    *,
    walk: RolloutConfig | None = None,
    seed: int = 0,
) -> Sequence[Rollout]:
    """Play rollouts of a toy.

    Args:
        toy: What is played.
        learner: Who plays.
        num_rollouts: Trees or chains.
        walk: How they are walked; by default as the learner wants it.
        seed: Decides which joint actions chains go on from.
    """
    return collect_rollouts(
        [ToyEnv(toy, learner.agents) for _ in range(num_rollouts)],
        learner,
        walk or learner.rollout,
        env_id=f"toy/{toy.name}-v0",
        task_options=[{} for _ in range(num_rollouts)],
        seeds=[seed * num_rollouts + number for number in range(num_rollouts)],
    ).rollouts


def update_gradient(learner: "PolicyGradientLearner", rollouts: Sequence[Rollout]) -> Tensor:
    """Return the direction in which an update on rollouts would raise the return.

    Weights and schedules stay as they are; random states move on.

    Returns:
        Minus the gradient of the loss, all policies one after the other, `[P]`. With several
        optimizer steps an update it is their sum.
    """
    total = torch.zeros(sum(weight.numel() for weight in _weights(learner)))
    with _recording(learner, total):
        learner.update(rollouts)
    return -total


def measure_slopes(
    toy: Toy,
    learner: "PolicyGradientLearner",
    *,
    walk: RolloutConfig | None = None,
    num_rollouts: int = 10_000,
    num_updates: int = 20,
    seed: int = 0,
) -> Slopes:
    """Compare the mean gradient of a method over sampled rollouts with the exact one.

    Args:
        toy: What is played.
        learner: The method and its policies; their weights stay as they are.
        walk: How rollouts are walked; by default as the learner wants it.
        num_rollouts: Trees or chains in all.
        num_updates: Updates that they are spread over; standard errors come from their spread.
        seed: Decides which joint actions chains go on from.

    Raises:
        ConfigError: If answers are longer than a token, or not drawn from the whole softmax.
    """
    _check_sampling(learner)
    exact, directions = _exact_slopes(toy, learner)
    size = math.ceil(num_rollouts / num_updates)
    found = torch.stack(
        [
            update_gradient(learner, play_toy(toy, learner, size, walk=walk, seed=seed + number))
            for number in range(num_updates)
        ]
    )  # [updates, P]
    slopes = torch.linalg.lstsq(directions.double().T, found.double().T).solution  # [K, updates]
    return Slopes(
        exact=tuple(exact),
        found=tuple(slopes.mean(1).tolist()),
        errors=tuple((slopes.std(1) / math.sqrt(num_updates)).tolist()),
    )


def _check_sampling(learner: "PolicyGradientLearner") -> None:
    config = learner.config
    if (config.max_new_tokens, config.temperature, config.top_p, config.top_k) != (1, 1.0, 1.0, 0):
        raise ConfigError(
            "exact gradients take max_new_tokens 1, temperature 1, top_p 1 and top_k 0, got "
            f"{config.max_new_tokens}, {config.temperature}, {config.top_p} and {config.top_k}"
        )


def _exact_slopes(toy: Toy, learner: "PolicyGradientLearner") -> tuple[list[float], Tensor]:
    """Return dJ/dp of each policy and text, and grad p, `[K, P]`."""
    chances: dict[Key, Tensor] = {}
    directions: list[Tensor] = []

    def chance(agent: AgentID, text: str) -> Tensor:
        name = learner.policy_of[agent]
        key = (name, tuple(learner.prompt_ids(agent, text)))
        if key not in chances:
            p = _pick_chance(learner, *key)
            directions.append(_gradient(p, _weights(learner)))
            chances[key] = p.detach().double().requires_grad_()
        return chances[key]

    value = expected_return(toy, learner.agents, chance)
    found = torch.autograd.grad(value, list(chances.values()), allow_unused=True)
    return [0.0 if slope is None else float(slope) for slope in found], torch.stack(directions)


def _pick_chance(learner: "PolicyGradientLearner", name: str, prompt: tuple[int, ...]) -> Tensor:
    """Return the probability that a policy picks 1, a scalar with a gradient."""
    policy = learner.policies[name]
    logits = policy.model(input_ids=torch.tensor([prompt], device=policy.device)).logits[0, -1]
    picks = [pick_of(text) for text in _texts_of(policy.tokenizer, len(logits))]
    return (torch.softmax(logits.float(), -1) * torch.tensor(picks, device=policy.device)).sum()


def _gradient(value: Tensor, weights: Sequence[torch.nn.Parameter]) -> Tensor:
    found = torch.autograd.grad(value, weights, allow_unused=True)
    return torch.cat(
        [
            torch.zeros(weight.numel()) if grad is None else grad.flatten().cpu()
            for weight, grad in zip(weights, found, strict=True)
        ]
    )


def _weights(learner: "PolicyGradientLearner") -> list[torch.nn.Parameter]:
    return [w for optimizer in learner.optimizers.values() for w in optimizer.parameters]


@contextlib.contextmanager
def _recording(learner: "PolicyGradientLearner", total: Tensor) -> Iterator[None]:
    """Add gradients up where optimizers would step, critics' included, which step nowhere."""
    start = 0
    critics: Mapping[str, Any] = getattr(getattr(learner, "critics", None), "optimizers", {})
    counts = [
        (optimizer, optimizer.num_updates, optimizer.num_steps)
        for optimizer in (*learner.optimizers.values(), *critics.values())
    ]
    for optimizer in learner.optimizers.values():
        length = sum(weight.numel() for weight in optimizer.parameters)
        optimizer.step = functools.partial(_record, optimizer, total[start : start + length])  # type: ignore[method-assign]
        start += length
    for critic in critics.values():
        critic.step = functools.partial(_record, critic, None)
    try:
        yield
    finally:
        for optimizer, num_updates, num_steps in counts:
            del optimizer.step
            optimizer.num_updates, optimizer.num_steps = num_updates, num_steps


def _record(optimizer: object, into: Tensor | None) -> float:
    """Take the place of an optimizer's step."""
    if into is not None:
        weights = optimizer.parameters  # type: ignore[attr-defined]
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        into += torch.cat([grad.flatten().cpu() for grad in grads])
    optimizer.clear()  # type: ignore[attr-defined]
    return 0.0


@functools.lru_cache(maxsize=8)
def _texts_of(tokenizer: object, size: int) -> list[str]:
    """Return the text of each token of a vocabulary."""
    decode = tokenizer.batch_decode  # type: ignore[attr-defined]
    texts: list[str] = decode([[number] for number in range(size)], skip_special_tokens=True)
    return texts
