"""Sampling of rollouts by a server instead of the trained model.

A server (`mlrl_envs.models.tokens`) answers the token ids of each prompt with token ids and
log-probabilities. Its weights may differ from the trained ones, in version, precision or kernels:
the option group `importance` corrects for it. Updating the weights of the server is left to the
user.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlrl_envs.errors import EndpointError, InvalidArgumentError
from mlrl_envs.models import Endpoint, TokenReply, TokenRequest
from mlrl_learners.config.options import check_unread
from mlrl_learners.errors import ConfigError, unknown_name
from mlrl_learners.policies import Policy, SamplingConfig, StopTexts
from mlrl_learners.processes.work_sharing import spread
from mlrl_learners.types import AgentID, Completion

__all__ = ["EndpointSampler", "SamplerOptions"]


@dataclass(frozen=True)
class SamplerOptions:
    """Who samples rollouts: the trained model, or an OpenAI-compatible server with token ids.

    Attributes:
        endpoint: Address of the server, such as `http://127.0.0.1:8000/v1`; empty to sample from
            the trained model. Evaluations are always played by the trained model.
        model: Name of the model on the server, for all trained agents or by agent; agents that are
            left out are played by the trained model.
        timeout_seconds: Time limit of one request in seconds, above 0.
        max_retries: Number of retries after a temporary failure, at least 0.
        max_concurrency: Largest number of parallel requests, at least 1.
    """

    endpoint: str = ""
    model: str | Mapping[str, str] = ""
    timeout_seconds: float = 600.0
    max_retries: int = 5
    max_concurrency: int = 64

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            ConfigError: If a value is outside its range, or has no effect beside another.
        """
        if not self.endpoint:
            names = ("model", "timeout_seconds", "max_retries", "max_concurrency")
            check_unread(self, names, "an empty sampler.endpoint: set it to an address")
            return
        if not self.model:
            raise ConfigError(f"model must name a model on {self.endpoint}, got {self.model!r}")
        try:
            for name in [self.model] if isinstance(self.model, str) else self.model.values():
                self.open(name, SamplingConfig())
        except InvalidArgumentError as error:
            raise ConfigError(str(error).replace("base_url", "endpoint")) from None

    def open(self, model: str, sampling: SamplingConfig) -> Endpoint:
        """Return the endpoint of a model on the server."""
        return Endpoint(
            self.endpoint,
            model,
            timeout_seconds=float(self.timeout_seconds),
            max_retries=self.max_retries,
            max_tokens=sampling.max_new_tokens,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_concurrency=self.max_concurrency,
        )


@dataclass
class EndpointSampler:
    """Sampler that asks a server.

    Attributes:
        models: Name of the model on the server by agent; other agents are not asked for.
        options: Address and limits of the server.
        sampling: Length and temperature of answers.
        versions: Versions of the server's weights since `take_metrics`, where it gives any.
    """

    models: Mapping[AgentID, str]
    options: SamplerOptions
    sampling: SamplingConfig
    versions: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls, options: SamplerOptions, sampling: SamplingConfig, learning: Sequence[AgentID]
    ) -> "EndpointSampler | None":
        """Return the sampler of the trained agents; None if the options name no server.

        Raises:
            UnknownNameError: If `options.model` names an agent that is not trained.
        """
        if not options.endpoint:
            return None
        if isinstance(options.model, str):
            return cls(dict.fromkeys(learning, options.model), options, sampling)
        for agent in options.model:
            if agent not in learning:
                raise unknown_name("trained agent", agent, learning)
        return cls(dict(options.model), options, sampling)

    def complete(
        self,
        agents: Sequence[AgentID],
        policies: Sequence[Policy],
        prompts: Sequence[Sequence[int]],
        num_samples: int,
        seeds: Sequence[int],
    ) -> list[list[Completion]]:
        """Return the answers to each prompt; requests are divided between processes.

        Args:
            agents: Agent of each prompt.
            policies: Its policy, whose tokenizer reads the answers.
            prompts: Token ids of each prompt.
            num_samples: Answers of each, G.
            seeds: Sampling seed of each prompt, in [0, 2**31).

        Raises:
            EndpointError: If a request fails, or an answer is not of the policy's vocabulary.
        """
        requests = [
            TokenRequest(prompt, num_samples, seed, policy.eos_ids, self.sampling.stop)
            for prompt, seed, policy in zip(prompts, seeds, policies, strict=True)
        ]

        def ask(ours: list[int]) -> dict[int, list[TokenReply] | EndpointError]:
            found: dict[int, list[TokenReply] | EndpointError] = {}
            for model in dict.fromkeys(self.models[agents[i]] for i in ours):
                mine = [i for i in ours if self.models[agents[i]] == model]
                endpoint = self.options.open(model, self.sampling)
                answers = endpoint.sample_tokens([requests[i] for i in mine])
                found |= zip(mine, answers, strict=True)
            return found

        replies = spread([1.0] * len(prompts), ask)
        stops = [StopTexts(policy.tokenizer, self.sampling.stop) for policy in policies]
        groups = [
            [_kept(reply, stop) for reply in group]
            for group, stop in zip(self._checked(replies), stops, strict=True)
        ]
        _check_vocabulary(self.options.endpoint, groups, policies, stops)
        self.versions += [
            reply.weight_version
            for group in groups
            for reply in group
            if reply.weight_version is not None
        ]
        return [
            [_completion(prompt, reply, policy, stop) for reply in group]
            for prompt, group, policy, stop in zip(prompts, groups, policies, stops, strict=True)
        ]

    def take_metrics(self) -> dict[str, float]:
        """Return the oldest and newest version of the weights that sampled, and forget them."""
        versions, self.versions = self.versions, []
        if not versions:
            return {}
        return {"sampler/oldest_weights": min(versions), "sampler/newest_weights": max(versions)}

    def _checked(
        self, replies: Sequence[list[TokenReply] | EndpointError]
    ) -> Iterator[list[TokenReply]]:
        for reply in replies:
            if isinstance(reply, EndpointError):
                raise reply
            yield reply


def _check_vocabulary(
    url: str,
    groups: Sequence[Sequence[TokenReply]],
    policies: Sequence[Policy],
    stops: Sequence[StopTexts],
) -> None:
    """Check that ids are of the policies' vocabularies, and stand for the texts of the server.

    Decoding differs in characters that the end of an answer cuts, so that only a majority of
    different texts is another vocabulary.
    """
    same = other = 0
    for group, policy, stop in zip(groups, policies, stops, strict=True):
        size = policy.model.config.vocab_size
        for reply in group:
            outside = [number for number in reply.token_ids if not 0 <= number < size]
            if outside:
                raise EndpointError(
                    f"endpoint {url}: token id {outside[0]} is outside the {size} tokens of the "
                    "trained model; serve the model that is trained, with its tokenizer"
                )
            if _plain(stop.cut(reply.text)) == _plain(_text(reply, policy, stop)):
                same += 1
            else:
                other += 1
    if other > same:
        raise EndpointError(
            f"endpoint {url}: {other} of {same + other} answers read differently with the "
            "tokenizer of the trained model; serve the model that is trained, with its tokenizer"
        )


def _kept(reply: TokenReply, stop: StopTexts) -> TokenReply:
    """Return a reply without the tokens after a stop text."""
    count = stop.num_kept(reply.token_ids)
    if count == len(reply.token_ids):
        return reply
    return replace(reply, token_ids=reply.token_ids[:count], logprobs=reply.logprobs[:count])


def _completion(
    prompt: Sequence[int], reply: TokenReply, policy: Policy, stop: StopTexts
) -> Completion:
    return Completion(
        text=_text(reply, policy, stop),
        prompt_ids=tuple(prompt),
        token_ids=reply.token_ids,
        logprobs=reply.logprobs,
        finish_reason=reply.finish_reason,
    )


def _text(reply: TokenReply, policy: Policy, stop: StopTexts) -> str:
    text: str = policy.tokenizer.decode(list(reply.token_ids), skip_special_tokens=True)
    return stop.cut(text)


def _plain(text: str) -> str:
    return text.replace("\ufffd", "").strip()
