"""AdamW with clipping and a learning-rate schedule for the weights of one policy."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.engine.sharding import piece_of, whole
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.policies.masters import MasterWeights
from mlrl_learners.policies.schedule import OptimizerConfig, learning_rate_share, planned_steps
from mlrl_learners.processes.work_sharing import broadcast, exchange, is_main, sum_tensors, world

__all__ = ["OptimizerConfig", "PolicyOptimizer", "learning_rate_share"]


class PolicyOptimizer:
    """Owns the optimizer state of some parameters.

    Parameters in bfloat16 or float16 have masters in float32, which take the steps. A falling
    schedule must be told how many updates there are (`plan_updates`), unless `total_steps` says it,
    and when one begins (`begin_update`).

    Args:
        parameters: What is trained; frozen ones are left out.
        config: Rate, clipping, schedule.

    Attributes:
        parameters: Those that are trained.
        num_steps: Steps of the schedule that are done, those that updates left out included.
        num_updates: Updates that were begun.
        last_lr: Learning rate of the last step that was taken; 0 before the first.

    Raises:
        ConfigError: If all of them are frozen.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], config: OptimizerConfig) -> None:
        self.config = config
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        if not self.parameters:
            raise ConfigError("there is nothing to train: no weight of the model takes a gradient")
        broadcast([p.data for p in self.parameters if not isinstance(p, DTensor)])
        self.num_steps = self.num_updates = 0
        self.last_lr = 0.0
        self._total_steps = config.total_steps
        self._masters = MasterWeights(self.parameters)
        self._trained = self._masters.trained
        self._adamw = torch.optim.AdamW(
            self._trained,
            lr=config.lr,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            **_implementation(self._trained),
        )

    def plan_updates(self, num_updates: int) -> None:
        """Take note of how many updates the whole run has, so that the rate falls over all of it.

        Args:
            num_updates: Those before a resume included.

        Raises:
            ConfigError: If the run has steps at rate 0, or ends within its warm-up.
        """
        self._total_steps = planned_steps(self.config, num_updates)

    def begin_update(self) -> None:
        """Forget gradients that a failed update left, and move the schedule on by an update.

        Each update counts `config.steps_per_update` steps, however few of them it takes.

        Raises:
            ConfigError: If the length of a falling schedule is not known, or it is over.
        """
        self.clear()
        done = self.num_updates * self.config.steps_per_update
        after = done + self.config.steps_per_update
        if self.config.schedule != "constant" and after > self._total_steps:
            raise ConfigError(self._why_over())
        self.num_steps = done
        self.num_updates += 1

    def step(self) -> float:
        """Apply the accumulated gradients, clear them, and return their norm before clipping.

        With several processes they are summed first, so that all of them take the same step; a
        process that had nothing to do takes part with zeros.

        Raises:
            NumericsError: If the norm is not finite; the parameters are left as they were.
        """
        self._masters.read()
        self._sum_gradients()
        norm = self._clip()
        if not math.isfinite(norm):
            self.clear()
            raise NumericsError(f"the gradient norm is {norm}; lower lr or look at the rollouts")
        self.last_lr = self.lr
        for group in self._adamw.param_groups:
            group["lr"] = self.last_lr
        self._adamw.step()
        self._masters.write()
        self.clear()
        self.num_steps += 1
        return norm

    def clear(self) -> None:
        """Forget accumulated gradients, as an update that failed half-way leaves them."""
        self._adamw.zero_grad(set_to_none=True)
        self._masters.clear()

    def _clip(self) -> float:
        """Scale gradients down to the limit and return their norm before."""
        limit = self.config.max_grad_norm or math.inf
        gradients = [p.grad for p in self._trained if p.grad is not None]
        pieces = [each.to_local() for each in gradients if isinstance(each, DTensor)]
        if not pieces:
            return float(torch.nn.utils.clip_grad_norm_(self._trained, limit))
        wholes = [each for each in gradients if not isinstance(each, DTensor)]
        here = sum(float(piece.double().square().sum()) for piece in pieces)
        norm = math.sqrt(
            sum(exchange(here)) + sum(float(each.double().square().sum()) for each in wholes)
        )
        if norm > limit:
            for each in (*pieces, *wholes):
                each.mul_(limit / norm)
        return norm

    def _sum_gradients(self) -> None:
        """Sum over processes; what no process has a gradient of is left without one."""
        if world().size == 1:
            return
        present = [parameter.grad is not None for parameter in self._trained]
        anywhere = [any(flags) for flags in zip(*exchange(present), strict=True)]
        gradients = []
        for parameter, is_used in zip(self._trained, anywhere, strict=True):
            if is_used and not isinstance(parameter, DTensor):  # those are summed in the backward
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        sum_tensors(gradients)

    @property
    def lr(self) -> float:
        """Learning rate of the next step.

        Raises:
            ConfigError: If the length of a falling schedule is not known.
        """
        if self.config.schedule != "constant" and not self._total_steps:
            raise ConfigError(self._why_over())
        share = learning_rate_share(self.num_steps, self.config, self._total_steps)
        return self.config.lr * share

    def state_dict(self) -> dict[str, Any]:
        """Return everything `load_state_dict` needs to go on exactly here.

        Where weights are in pieces, all processes must call it, and the first one gets all of it.
        """
        state = self._adamw.state_dict()
        moments = {
            number: {name: _on_the_first(value) for name, value in values.items()}
            for number, values in state["state"].items()
        }
        masters = self._masters.by_number
        return {
            "adamw": {**state, "state": moments},
            "masters": {number: _on_the_first(each.detach()) for number, each in masters.items()},
            "num_steps": self.num_steps,
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; the parameters must have been restored before.

        A state from before there were masters is read: they start from the parameters.
        """
        moments = {
            number: {name: piece_of(value, self._trained[number]) for name, value in mine.items()}
            for number, mine in state["adamw"]["state"].items()
        }
        self._adamw.load_state_dict({**state["adamw"], "state": moments})
        for group in self._adamw.param_groups:
            group.update(_implementation(self._trained))
        self._masters.load(state.get("masters", {}))
        self.num_steps = state["num_steps"]
        begun = -(-self.num_steps // self.config.steps_per_update)
        self.num_updates = state.get("num_updates", begun)

    def _why_over(self) -> str:
        """Say why there is no rate for another update."""
        name = self.config.schedule
        if not self._total_steps:
            return (
                f"the schedule {name!r} falls over a whole run, and its length is not known: "
                "train with mlrl_learners.train, call plan_updates(...) before the first "
                "update, or set total_steps"
            )
        return (
            f"the schedule {name!r} is over after {self._total_steps} optimizer steps, "
            f"{self.num_updates} updates: another would train at lr 0; plan_updates says how many "
            "a longer run has"
        )


def _implementation(parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """Return which implementation of AdamW takes these parameters fastest."""
    in_pieces = [isinstance(parameter, DTensor) for parameter in parameters]
    if any(in_pieces) and not all(in_pieces):  # only the plain loop takes both kinds
        return {"foreach": False, "fused": False}
    if parameters[0].device.type == "cpu":
        return {"foreach": False, "fused": True}
    return {"foreach": None, "fused": None}


def _on_the_first(value: Tensor) -> Tensor | None:
    """Put a tensor in pieces together in the first process; any other is returned as it is."""
    if not isinstance(value, DTensor):
        return value
    together = whole(value)
    return together.cpu() if is_main() else None
