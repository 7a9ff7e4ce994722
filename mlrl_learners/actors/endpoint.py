"""Actor that plays every agent with a model behind an OpenAI-compatible server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from mlrl_envs import tools_of
from mlrl_envs.models import ChatReply, Endpoint
from mlrl_learners.seeding import derive_seed
from mlrl_learners.types import AgentID, Completion, Usage
from mlrl_learners.types.conversations import Conversation, chat_messages

__all__ = ["EndpointActor"]


class EndpointActor:
    """Actor that sends each observation as a user message to a server.

    Every answer has a seed of its own, derived from the actor's seed and the number of earlier
    answers. Without a seed, the server chooses.

    Args:
        endpoint: Server, model, sampling options and seed.
        conversation: Whether earlier turns of an agent are messages before it, too.
        tools: Id of an environment whose tools the server describes to the model; empty for none.
            Its calls become text after the content of the answer.

    Raises:
        UnknownNameError: If there is no environment of that id.
        InvalidArgumentError: If the environment has no tools.
    """

    def __init__(self, endpoint: Endpoint, *, conversation: bool = False, tools: str = "") -> None:
        self.endpoint = endpoint
        self.conversation = conversation
        self.tools = tools_of(tools) if tools else []
        self._seed = endpoint.seed
        self._drawn = 0

    def act(
        self,
        observations: Sequence[Mapping[AgentID, str]],
        *,
        num_samples: int = 1,
        explore: bool = True,
    ) -> list[Mapping[AgentID, list[Completion]]]:
        """Request all answers concurrently.

        Args:
            observations: Joint observations, each a mapping of agents to texts.
            num_samples: Number of answers of each agent to each observation.
            explore: Sample with the endpoint's options; if false, request one answer at temperature
                0 and repeat it.

        Raises:
            EndpointError: If a request fails.
        """
        different = num_samples if explore else 1
        texts = [text for each in observations for text in each.values() for _ in range(different)]
        replies = iter(self._ask(texts, explore=explore))
        return [
            {agent: _group(replies, different, num_samples) for agent in each}
            for each in observations
        ]

    @contextmanager
    def sampling_seed(self, seed: int) -> Iterator[None]:
        """Sample from `seed` inside the block, then restore the state."""
        before = self._seed, self._drawn
        self._seed, self._drawn = seed, 0
        try:
            yield
        finally:
            self._seed, self._drawn = before

    def _ask(self, texts: Sequence[str], *, explore: bool) -> list[ChatReply]:
        endpoint = self.endpoint
        if not explore:
            endpoint = replace(endpoint, temperature=0.0, top_p=None)
        seeds = None
        if self._seed is not None:
            first = self._drawn
            self._drawn += len(texts)
            seeds = [derive_seed(self._seed, first + number) for number in range(len(texts))]
        messages = [self._messages(text) for text in texts]
        return endpoint.complete(messages, seeds=seeds, tools=self.tools)

    def _messages(self, text: str) -> list[dict[str, str]]:
        is_chat = self.conversation and isinstance(text, Conversation)
        earlier = text.earlier if is_chat else ()  # type: ignore[attr-defined]  # checked above
        return [
            {"role": role, "content": content} for role, content in chat_messages(text, earlier)
        ]


def _group(replies: Iterator[ChatReply], different: int, num_samples: int) -> list[Completion]:
    group = [_completion(next(replies)) for _ in range(different)]
    return group * (num_samples // different)


def _completion(reply: ChatReply) -> Completion:
    usage = Usage(reply.prompt_tokens, reply.completion_tokens)
    return Completion(reply.text, finish_reason=reply.finish_reason, usage=usage)
