"""Critics: linear value heads on the hidden states of a language model.

The head reads the decoder's last hidden state at the last token of the prompt, before the answer,
or before each token of the answer.
The model below it is either the critic's own or the actor's.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from mlrl_learners.engine import TokenRow
from mlrl_learners.policies.policy import Policy
from mlrl_learners.policies.states import restore

__all__ = ["Critic"]

HEAD_FILE = "value_head.pt"


class Critic:
    """A value head on a policy's model.

    The head is initialised with zeros, so that the first values are zero.

    Args:
        trunk: Policy whose model reads the prompts.
        num_values: Values per prompt, V.
        owns_trunk: Whether the model is trained and saved with the critic.
        bias: Whether the head has a bias.
    """

    def __init__(
        self, trunk: Policy, num_values: int, *, owns_trunk: bool, bias: bool = True
    ) -> None:
        self.trunk = trunk
        self.owns_trunk = owns_trunk
        width = trunk.model.get_output_embeddings().in_features
        self.head = nn.Linear(width, num_values, bias=bias)
        for weight in self.head.parameters():
            nn.init.zeros_(weight)
        self.head.to(trunk.device)

    def parameters(self) -> list[nn.Parameter]:
        """Return what the critic's optimizer trains: the head, and the model if it is its own."""
        trunk = self.trunk.decoder_parameters() if self.owns_trunk else ()
        return [*trunk, *self.head.parameters()]

    def values(self, prompts: Sequence[Sequence[int]]) -> Tensor:
        """Return the values of prompts, `[B, V]` in float32; equal prompts are read once."""
        places = {prompt: place for place, prompt in enumerate(dict.fromkeys(map(tuple, prompts)))}
        states = self.trunk.prompt_states(list(places))
        rows = torch.tensor([places[tuple(prompt)] for prompt in prompts], dtype=torch.long)
        return self.of_states(states)[rows.to(states.device)]

    def token_values(self, rows: Sequence[TokenRow]) -> Tensor:
        """Return the values before each completion token, `[T, V]` in float32."""
        return self.of_states(self.trunk.token_states(rows))

    def of_states(self, states: Tensor) -> Tensor:
        """Return the values, `[B, V]`, at states `[B, H]` of a forward pass of the actor."""
        values: Tensor = self.head(states.float())
        return values

    def save(self, folder: Path) -> None:
        """Write the head into a folder, and the model if it is the critic's own."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.owns_trunk:
            self.trunk.save(folder)
        torch.save(self.head.state_dict(), folder / HEAD_FILE)

    def load(self, folder: Path) -> None:
        """Read what `save` wrote.

        Raises:
            CheckpointError: If the folder holds no critic, or one of another model or team.
        """
        restore(folder / HEAD_FILE, self.head.load_state_dict)
        if self.owns_trunk:
            self.trunk.load(folder)
