"""AdamW with gradient clipping and a learning-rate schedule, for the weights of one policy."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from mlrl_learners.engine.sharding import piece_of, whole
from mlrl_learners.errors import ConfigError, NumericsError
from mlrl_learners.policies.loss_scale import LossScale
from mlrl_learners.policies.masters import MasterWeights
from mlrl_learners.policies.schedule import OptimizerConfig, learning_rate_share, planned_steps
from mlrl_learners.processes.work_sharing import broadcast, exchange, is_main, sum_tensors, world

__all__ = ["OptimizerConfig", "PolicyOptimizer", "learning_rate_share"]


class PolicyOptimizer:
    """Optimizer and its state for some parameters.

    Parameters in bfloat16 or float16 have float32 masters, which are updated. A decaying schedule
    needs the number of updates (`plan_updates`), unless `total_steps` is set, and the start of each
    update (`begin_update`).

    Args:
        parameters: Parameters to train; those without a gradient are left out.
        config: Learning rate, clipping and schedule.
        scale: Scale of the losses; by default none.

    Attributes:
        parameters: Trained parameters.
        scale: Scale of the losses.
        num_steps: Steps of the schedule so far, including steps that updates did not use.
        num_updates: Updates that have begun.
        last_lr: Learning rate of the last step; 0 before the first.

    Raises:
        ConfigError: If all parameters are frozen.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        config: OptimizerConfig,
        scale: LossScale | None = None,
    ) -> None:
        self.config = config
        self.scale = scale or LossScale()
        self.scale.num_optimizers += 1
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
        """Set the number of updates over which the learning rate decays.

        Args:
            num_updates: Updates of the whole run, including those before a resume.

        Raises:
            ConfigError: If the run has steps at rate 0, or ends within its warm-up.
        """
        self._total_steps = planned_steps(self.config, num_updates)

    def begin_update(self) -> None:
        """Clear gradients of a failed update, and advance the schedule by one update.

        Each update counts as `config.steps_per_update` steps, even if it takes fewer.

        Raises:
            ConfigError: If the length of a decaying schedule is unknown, or the schedule is over.
        """
        self.clear()
        self.scale.begin_update()
        done = self.num_updates * self.config.steps_per_update
        after = done + self.config.steps_per_update
        if self.config.schedule != "constant" and after > self._total_steps:
            raise ConfigError(self._why_over())
        self.num_steps = done
        self.num_updates += 1

    def backward(self, loss: Tensor) -> None:
        """Accumulate the gradients of a loss, times its scale."""
        self.scale.scaled(loss).backward()

    def step(self) -> float:
        """Apply the accumulated gradients, clear them, and return their norm before clipping.

        With several processes all must have the same gradients, see
        `mlrl_learners.policies.gradient_batches`. If the norm is not finite and the loss was
        scaled, the step is skipped, in all processes alike, and the result is 0.

        Raises:
            NumericsError: If the norm is not finite; the parameters are left as they were.
        """
        self._masters.read()
        self.scale.unscale(self._trained)
        norm = self._clip()
        if not math.isfinite(norm):
            self.clear()
            if not self.scale.is_active:
                raise NumericsError(
                    f"the gradient norm is {norm}; lower lr or look at the rollouts"
                )
            self.scale.report(is_finite=False)
            return 0.0
        self.last_lr = self.lr
        for group in self._adamw.param_groups:
            group["lr"] = self.last_lr
        self._adamw.step()
        self._masters.write()
        self.clear()
        self.scale.report(is_finite=True)
        self.num_steps += 1
        return norm

    def clear(self) -> None:
        """Clear accumulated gradients."""
        self._adamw.zero_grad(set_to_none=True)
        self._masters.clear()

    def _clip(self) -> float:
        """Clip the gradients and return their norm before clipping."""
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

    def sum_gradients(self) -> None:
        """Sum gradients over processes; a parameter without a gradient in all of them gets none.

        Gradients of sharded parameters are left as they are: the backward pass has summed them.
        """
        if world().size == 1:
            return
        present = [parameter.grad is not None for parameter in self._trained]
        anywhere = [any(flags) for flags in zip(*exchange(present), strict=True)]
        gradients = []
        for parameter, is_used in zip(self._trained, anywhere, strict=True):
            if is_used and not isinstance(parameter, DTensor):
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        sum_tensors(gradients)

    @property
    def trained(self) -> list[nn.Parameter]:
        """Tensors that gradients are added to: masters, and the other parameters."""
        return self._trained

    @property
    def lr(self) -> float:
        """Learning rate of the next step.

        Raises:
            ConfigError: If the length of a decaying schedule is unknown.
        """
        if self.config.schedule != "constant" and not self._total_steps:
            raise ConfigError(self._why_over())
        share = learning_rate_share(self.num_steps, self.config, self._total_steps)
        return self.config.lr * share

    def state_dict(self) -> dict[str, Any]:
        """Return everything that `load_state_dict` needs to continue exactly from here.

        With sharded weights all processes must call it, and the first one gets the whole state.
        """
        state = self._adamw.state_dict()
        moments = {
            number: {name: _on_the_first(value) for name, value in values.items()}
            for number, values in state["state"].items()
        }
        masters = self._masters.by_number
        scale = {"loss_scale": self.scale.state_dict()} if self.scale.is_active else {}
        return {
            "adamw": {**state, "state": moments},
            "masters": {number: _on_the_first(each.detach()) for number, each in masters.items()},
            "num_steps": self.num_steps,
            "num_updates": self.num_updates,
            **scale,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore what `state_dict` returned; the parameters must have been restored before.

        Masters missing in older states are set to the parameters.
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
        if "loss_scale" in state:
            self.scale.load_state_dict(state["loss_scale"])

    def _why_over(self) -> str:
        """Return the message of the error that there is no learning rate for another update."""
        name = self.config.schedule
        if not self._total_steps:
            return (
                f"the schedule {name!r} decays over a whole run, and its length is not known: "
                "train with mlrl_learners.train, call plan_updates(...) before the first "
                "update, or set total_steps"
            )
        return (
            f"the schedule {name!r} is over after {self._total_steps} optimizer steps, "
            f"{self.num_updates} updates: another would train at lr 0; plan_updates says how many "
            "a longer run has"
        )


def _implementation(parameters: Sequence[nn.Parameter]) -> dict[str, Any]:
    """Return the options of the fastest AdamW implementation for these parameters."""
    sharded = [isinstance(parameter, DTensor) for parameter in parameters]
    if any(sharded) and not all(sharded):  # only the loop over parameters supports both
        return {"foreach": False, "fused": False}
    if parameters[0].device.type == "cpu":
        return {"foreach": False, "fused": True}
    return {"foreach": None, "fused": None}


def _on_the_first(value: Tensor) -> Tensor | None:
    """Gather a sharded tensor in the first process; return any other tensor as it is."""
    if not isinstance(value, DTensor):
        return value
    gathered = whole(value)
    return gathered.cpu() if is_main() else None
