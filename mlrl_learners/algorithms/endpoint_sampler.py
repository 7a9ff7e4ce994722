"""Sampling of rollouts by a server instead of the trained model.

A server (`mlrl_envs.models.tokens`) answers the token ids of each prompt with token ids and
log-probabilities. Its weights may differ from the trained ones, in version, precision or kernels:
the option group `importance` corrects for it. `sampler.update` says who renews its weights.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mlrl_envs.errors import EndpointError
from mlrl_envs.models import TokenReply, TokenRequest
from mlrl_learners.algorithms.sampler_options import SamplerOptions
from mlrl_learners.algorithms.server_weights import ServerWeights, policies_by_model
from mlrl_learners.errors import unknown_name
from mlrl_learners.policies import Policy, SamplingConfig, StopTexts
from mlrl_learners.processes.work_sharing import spread
from mlrl_learners.types import AgentID, Completion

__all__ = ["EndpointSampler"]


@dataclass
class EndpointSampler:
    """Sampler that asks a server.

    Attributes:
        models: Name of the model on the server by agent; other agents are not asked for.
        options: Address and limits of the server.
        sampling: Length and temperature of answers.
        weights: The weights of the server, if the trainer renews them.
        versions: Versions of the server's weights since `take_metrics`, where it gives any.
    """

    models: Mapping[AgentID, str]
    options: SamplerOptions
    sampling: SamplingConfig
    weights: ServerWeights | None = None
    versions: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        options: SamplerOptions,
        sampling: SamplingConfig,
        learning: Mapping[AgentID, Policy],
    ) -> "EndpointSampler | None":
        """Return the sampler of the trained agents; None if the options name no server.

        Args:
            options: The server.
            sampling: Length and temperature of answers.
            learning: Policy of each trained agent.

        Raises:
            UnknownNameError: If `options.model` names an agent that is not trained.
            ConfigError: If the server cannot take the weights of these policies.
        """
        if not options.endpoint:
            return None
        if isinstance(options.model, str):
            models = dict.fromkeys(learning, options.model)
        else:
            models = dict(options.model)
        for agent in models:
            if agent not in learning:
                raise unknown_name("trained agent", agent, list(learning))
        if options.update == "none":
            return cls(models, options, sampling)
        weights = ServerWeights(
            options.update,
            Path(options.weights_folder),
            policies_by_model(options.update, models, learning),
            lambda model: options.open(model, sampling),
        )
        return cls(models, options, sampling, weights)

    def expire(self) -> None:
        """Note that the trained weights have changed."""
        if self.weights is not None:
            self.weights.is_current = False

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

        The server loads the trained weights first, if it has older ones and `weights` is set.

        Raises:
            EndpointError: If a request fails, or an answer is not of the policy's vocabulary.
        """
        if self.weights is not None:
            self.weights.renew()
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
