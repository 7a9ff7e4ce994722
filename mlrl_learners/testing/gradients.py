"""Comparison of sampled policy gradients on toys with the exact gradient of the return.

The return J of an agent depends on the weights only through the probabilities p of picking 1, one
for each policy and observation, and its own picks follow its own return: the expected gradient is
the sum over agents of dJ/dp * grad p over the agent's picks. The slopes dJ/dp are known exactly.
The slopes of a method are estimated from its mean gradient over many sampled rollouts, by least
squares on the vectors grad p. An unbiased method has the exact slopes up to one factor, which
depends on its loss and its baseline.

Covers the policy-gradient methods of this package, with answers of one token sampled at
temperature 1 from the whole vocabulary.
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
from mlrl_learners.testing.toy_env import ToyEnv
from mlrl_learners.testing.toys import Toy, expected_returns, pick_of
from mlrl_learners.types import AgentID, Rollout, RolloutConfig

if TYPE_CHECKING:
    from mlrl_learners.algorithms.actor_critic import ActorCritic
    from mlrl_learners.algorithms.magrpo import Magrpo

    PolicyGradientLearner = Magrpo | ActorCritic

__all__ = ["Slopes", "measure_slopes", "play_toy", "update_gradient"]

Key = tuple[str, tuple[int, ...]]
"""Name of a policy, and a prompt."""


@dataclass(frozen=True, slots=True)
class Slopes:
    """Slopes dJ/dp of the return of a toy: exact ones, and estimates of a method.

    Attributes:
        exact: Exact slopes, in the order in which policies and prompts first occur.
        found: Estimated slopes, means over updates.
        errors: Standard errors of `found`.
    """

    exact: tuple[float, ...]
    found: tuple[float, ...]
    errors: tuple[float, ...]

    @property
    def scale(self) -> float:
        """Least-squares factor from the exact to the estimated slopes."""
        square = math.fsum(value**2 for value in self.exact)
        if not square:
            return 1.0
        return math.fsum(f * e for f, e in zip(self.found, self.exact, strict=True)) / square

    @property
    def error(self) -> float:
        """Relative distance of the estimated slopes from the scaled exact ones, in [0, 2].

        It is 2 if the method descends instead of ascending.
        """
        length = math.hypot(*self.exact)
        if not length:  # the exact gradient is 0, so any slope is an error
            return math.hypot(*self.found)
        if self.scale <= 0:
            return 2.0
        rest = [f / self.scale - e for f, e in zip(self.found, self.exact, strict=True)]
        return math.hypot(*rest) / length

    @property
    def standard_error(self) -> float:
        """Standard error of the estimated slopes, in the unit of `error`."""
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
    """Return rollouts of a toy.

    Args:
        toy: The toy.
        learner: Learner that plays it.
        num_rollouts: Number of rollouts.
        walk: Collection of rollouts; by default `learner.rollout`.
        seed: Seed of the branches of chains.
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
    """Return the ascent direction of an update on rollouts.

    Weights and schedules are not changed; random generators advance.

    Args:
        learner: The learner.
        rollouts: Rollouts of the update.

    Returns:
        Minus the gradient of the loss, concatenated over policies, `[P]`; summed over the optimizer
        steps of the update.
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
    """Compare the mean gradient of a method over sampled rollouts with the exact gradient.

    Args:
        toy: The toy.
        learner: The method and its policies, whose weights are not changed.
        walk: Collection of rollouts; by default `learner.rollout`.
        num_rollouts: Total number of rollouts.
        num_updates: Number of updates that they are divided into, for standard errors.
        seed: Seed of the branches of chains.

    Raises:
        ConfigError: If answers have several tokens, or are not sampled from the whole softmax.
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
    config = learner.config.sampling
    if (config.max_new_tokens, config.temperature, config.top_p, config.top_k) != (1, 1.0, 1.0, 0):
        raise ConfigError(
            "exact gradients take max_new_tokens 1, temperature 1, top_p 1 and top_k 0, got "
            f"{config.max_new_tokens}, {config.temperature}, {config.top_p} and {config.top_k}"
        )


def _exact_slopes(toy: Toy, learner: "PolicyGradientLearner") -> tuple[list[float], Tensor]:
    """Return the K slopes dJ/dp of policies and prompts, and the vectors grad p, `[K, P]`."""
    chances: dict[Key, Tensor] = {}
    directions: list[Tensor] = []

    def chance(learning: AgentID, agent: AgentID, text: str) -> Tensor:
        name = learner.policy_of[agent]
        key = (name, tuple(learner.prompt_ids(agent, text)))
        if key not in chances:
            p = _pick_chance(learner, *key)
            directions.append(_gradient(p, _weights(learner)))
            chances[key] = p.detach().double().requires_grad_()
        return chances[key] if agent == learning else chances[key].detach()

    # Each agent's picks follow the gradient of its own return.
    value = torch.zeros((), dtype=torch.float64)
    for number, agent in enumerate(learner.agents):
        own = expected_returns(toy, learner.agents, functools.partial(chance, agent))[number]
        value = value + own
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
    """Replace the optimizers' steps inside the block by adding the policies' gradients to `total`.

    Critics do not take steps either.
    """
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
    """Add the gradients of an optimizer's weights to `into`, and clear them."""
    if into is not None:
        weights = optimizer.parameters  # type: ignore[attr-defined]
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        into += torch.cat([grad.flatten().cpu() for grad in grads])
    optimizer.clear()  # type: ignore[attr-defined]
    return 0.0


@functools.lru_cache(maxsize=8)
def _texts_of(tokenizer: object, size: int) -> list[str]:
    """Return the text of every token of a vocabulary."""
    decode = tokenizer.batch_decode  # type: ignore[attr-defined]
    texts: list[str] = decode([[number] for number in range(size)], skip_special_tokens=True)
    return texts
