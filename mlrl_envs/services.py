"""Protocols of what is injected into an environment: sandbox, chat model and text scorer.

`mlrl_envs.types` has these names, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mlrl_envs.sandbox import Outcome, Program, Reply, Script

__all__ = ["ChatModel", "Messages", "ProgramRunner", "TextScorer", "TextToScore"]

Messages = Sequence[Mapping[str, str]]
"""A conversation: mappings with the keys `role` (system, user, assistant) and `content`."""


class ProgramRunner(Protocol):
    """The part of a sandbox that families use; results are in the order of the arguments."""

    def run_many(self, programs: "Sequence[Program]") -> "list[Outcome]":
        """Run untrusted programs.

        Raises:
            InfraError: If the sandbox fails; errors of a program are part of its outcome.
        """
        ...

    def play_many(self, scripts: "Sequence[Script]") -> "list[list[Reply]]":
        """Run the scripts of sessions and return one reply for each call.

        Raises:
            InfraError: If the sandbox fails; errors of a call are part of its reply.
        """
        ...


class ChatModel(Protocol):
    """A chat model that judges or advises; `mlrl_envs.models.Endpoint` is one.

    Attributes:
        model: The name of the model, for error messages.
    """

    @property
    def model(self) -> str:
        """See the attributes above."""
        ...

    def chat_many(self, batch: Sequence[Messages]) -> list[str]:
        """Return the answer to each conversation, in order.

        Raises:
            EndpointError: If an answer cannot be obtained.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextToScore:
    """A text and its context, as a text scorer reads them.

    Attributes:
        text: The text to score.
        source: What the text is about: the post, the abstract, the proposition; may be empty.
        instruction: What the writer was asked to do; may be empty.
        others: Sources of other tasks, against which a scorer may compare `source`.
    """

    text: str
    source: str = ""
    instruction: str = ""
    others: tuple[str, ...] = ()


class TextScorer(Protocol):
    """A scorer of texts; `mlrl_envs.models.scorers` has implementations.

    A scorer is picklable, because environments are. On a CPU its scores are deterministic and do
    not depend on the other texts of a batch (up to 1e-5).

    Attributes:
        fingerprint: A hash of what decides a score: the model, the prompt, and constants.
    """

    @property
    def fingerprint(self) -> str:
        """See the attributes above."""
        ...

    def score_many(self, batch: Sequence[TextToScore]) -> list[float]:
        """Return the score of each text, in order, in [0, 1]; any text has a score.

        Raises:
            InfraError: If the model cannot be loaded, run or reached.
        """
        ...
