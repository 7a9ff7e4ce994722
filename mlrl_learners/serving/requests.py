"""Requests of OpenAI's chat and completions APIs: fields, ranges and defaults.

Fields of vLLM that trainers use are supported as well: `top_k`, `stop_token_ids`,
`return_token_ids`, `return_tokens_as_token_ids`. Unsupported fields are accepted only if they do
not change the answers (`IGNORED`, or a value in `NEUTRAL`); unknown fields are refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlrl_learners.engine import SamplingConfig
from mlrl_learners.errors import ConfigError
from mlrl_learners.serving.errors import RequestError
from mlrl_learners.serving.tool_calls import read_tools, text_of_calls
from mlrl_learners.serving.values import Fields

__all__ = ["Prompt", "SampleRequest", "read_chat", "read_completion"]

MOST_SAMPLES = 1_024
MOST_TOP = 20
MOST_STOPS = 16
CHAT_TOKENS = 256
COMPLETION_TOKENS = 16  # OpenAI's default
LEAST_TEMPERATURE = 0.01
LARGEST_SEED = 2**63 - 1

IGNORED = ("user", "store", "metadata", "service_tier", "parallel_tool_calls", "safety_identifier")
NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "repetition_penalty": (1,),
    "min_p": (0,),
    "best_of": (1,),
    "echo": (False,),
    "suffix": ("",),
    "logit_bias": ({},),
    "functions": ([],),
    "response_format": ({"type": "text"},),
    "modalities": (["text"],),
    "ignore_eos": (False,),
    "skip_special_tokens": (True,),
}
ROLES = ("system", "user", "assistant", "tool")
Prompt = str | tuple[int, ...] | tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class SampleRequest:
    """A validated request.

    Attributes:
        model: Name of a model on this server.
        prompts: Texts, token ids, or one conversation.
        num_samples: Number of answers per prompt (`n`).
        sampling: Maximum length, temperature, truncation and stop texts.
        greedy: Decode greedily; log-probabilities are then those at temperature 1.
        seed: Seed of the answers; None for a random one.
        stop_token_ids: Token ids that end an answer, in addition to those of the model.
        num_top: Number of most likely tokens to return at each position; None to return no
            log-probabilities at all.
        is_chat: Whether the prompt is a conversation.
        return_token_ids: Return the token ids of prompts and answers.
        tokens_as_ids: Write tokens next to log-probabilities as `token_id:42`.
        stream: Send tokens as they are sampled.
        include_usage: End a stream with the token counts.
        tools: Tools that the chat template describes; calls of them are taken out of the answers.
    """

    model: str
    prompts: tuple[Prompt, ...]
    num_samples: int
    sampling: SamplingConfig
    greedy: bool = False
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()
    num_top: int | None = None
    is_chat: bool = False
    return_token_ids: bool = False
    tokens_as_ids: bool = False
    stream: bool = False
    include_usage: bool = False
    tools: tuple[Mapping[str, Any], ...] = ()

    @property
    def num_answers(self) -> int:
        """Total number of answers to all prompts."""
        return len(self.prompts) * self.num_samples


def read_chat(body: object) -> SampleRequest:
    """Parse the body of a request to `/v1/chat/completions`.

    Raises:
        RequestError: If a field is missing, unknown, unsupported or out of range.
    """
    fields = Fields(body)
    messages = _messages(fields.take("messages"))
    length = fields.integer("max_completion_tokens", None, 1) or fields.integer(
        "max_tokens", CHAT_TOKENS, 1
    )
    fields.take("max_tokens")
    with_logprobs = fields.flag("logprobs")
    num_top = fields.integer("top_logprobs", None, 0, MOST_TOP)
    tools = read_tools(fields)
    if num_top and not with_logprobs:
        raise RequestError("top_logprobs needs logprobs true", param="top_logprobs")
    return _read_common(
        fields,
        (messages,),
        int(length or CHAT_TOKENS),
        is_chat=True,
        num_top=(num_top or 0) if with_logprobs else None,
        tools=tools,
    )


def read_completion(body: object) -> SampleRequest:
    """Parse the body of a request to `/v1/completions`.

    Raises:
        RequestError: If a field is missing, unknown, unsupported or out of range.
    """
    fields = Fields(body)
    prompts = _prompts(fields.take("prompt"))
    length = fields.integer("max_tokens", COMPLETION_TOKENS, 1)
    num_top = fields.integer("logprobs", None, 0, MOST_TOP)
    return _read_common(
        fields, prompts, int(length or COMPLETION_TOKENS), is_chat=False, num_top=num_top
    )


def _read_common(
    fields: Fields,
    prompts: tuple[Prompt, ...],
    max_tokens: int,
    *,
    is_chat: bool,
    num_top: int | None,
    tools: tuple[Mapping[str, Any], ...] = (),
) -> SampleRequest:
    """Parse the fields that both APIs share, and refuse all other fields."""
    temperature = _temperature(fields)
    top_p = fields.number("top_p", 1.0, 0.0, 1.0)
    top_k = max(0, fields.integer("top_k", 0, -1) or 0)
    truncates = top_p < 1 or top_k > 0
    options = fields.take("stream_options")
    request = SampleRequest(
        model=fields.text("model"),
        prompts=prompts,
        num_samples=fields.integer("n", 1, 1, MOST_SAMPLES) or 1,
        sampling=_sampling(
            max_new_tokens=max_tokens,
            temperature=temperature or 1.0,
            top_p=top_p,
            top_k=top_k,
            # Log-probabilities are those of the full distribution, also with top_p or top_k.
            renormalize=not truncates,
            stop=_stops(fields.take("stop")),
        ),
        greedy=temperature == 0,
        seed=fields.integer("seed", None, -LARGEST_SEED, LARGEST_SEED),
        stop_token_ids=_token_ids(fields.take("stop_token_ids") or [], "stop_token_ids"),
        num_top=num_top,
        is_chat=is_chat,
        return_token_ids=fields.flag("return_token_ids"),
        tokens_as_ids=fields.flag("return_tokens_as_token_ids"),
        stream=fields.flag("stream"),
        include_usage=isinstance(options, Mapping) and options.get("include_usage") is True,
        tools=tools,
    )
    fields.refuse_rest(NEUTRAL, IGNORED)
    return request


def _temperature(fields: Fields) -> float:
    temperature = fields.number("temperature", 1.0, 0.0, 100.0)
    if 0 < temperature < LEAST_TEMPERATURE:
        raise RequestError(
            f"temperature must be 0 or at least {LEAST_TEMPERATURE}, got {temperature}",
            param="temperature",
        )
    return temperature


def _sampling(**options: Any) -> SamplingConfig:  # noqa: ANN401  its own fields
    try:
        return SamplingConfig(**options)
    except ConfigError as error:
        raise RequestError(str(error), param=str(error).partition(" ")[0]) from None


def _messages(value: object) -> tuple[Mapping[str, str], ...]:
    if not isinstance(value, list) or not value:
        raise RequestError("messages must be a list with at least one message", param="messages")
    found = tuple(_message(each, number) for number, each in enumerate(value))
    has_calls = [isinstance(each, Mapping) and bool(each.get("tool_calls")) for each in value]
    for number, message in enumerate(found):
        if message["role"] == "tool" and not any(has_calls[:number]):
            raise RequestError(
                f"messages[{number}] of the role tool must come after tool_calls", param="messages"
            )
    return found


def _message(value: object, number: int) -> Mapping[str, str]:
    place = f"messages[{number}]"
    if not isinstance(value, Mapping) or value.get("role") not in ROLES:
        roles = f"{', '.join(ROLES[:-1])} or {ROLES[-1]}"
        raise RequestError(f"{place} must have a role, which is {roles}", param="messages")
    content = value.get("content")
    if isinstance(content, list):
        content = _joined(content)
    calls = text_of_calls(value, place) if value["role"] == "assistant" else ""
    if calls:
        content = f"{content}\n{calls}" if content else calls
    if not isinstance(content, str):
        raise RequestError(f"{place} must have a content, which is a text", param="messages")
    return {"role": str(value["role"]), "content": content}


def _joined(parts: Sequence[object]) -> str | None:
    """Return the concatenated text of content parts; None if a part is not text."""
    texts = [
        each.get("text") if isinstance(each, Mapping) and each.get("type") == "text" else None
        for each in parts
    ]
    return "".join(map(str, texts)) if all(isinstance(text, str) for text in texts) else None


def _prompts(value: object) -> tuple[Prompt, ...]:
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or not value:
        raise RequestError("prompt must be a text, token ids, or a list of these", param="prompt")
    if isinstance(value[0], int):
        return (_token_ids(value, "prompt"),)
    return tuple(
        each if isinstance(each, str) else _token_ids(each, "prompt", empty=False) for each in value
    )


def _token_ids(value: object, name: str, *, empty: bool = True) -> tuple[int, ...]:
    is_list = isinstance(value, list) and (empty or value)
    if not is_list or not all(type(each) is int and each >= 0 for each in value):  # type: ignore[attr-defined]
        raise RequestError(f"{name} must hold token ids, which are ints from 0", param=name)
    return tuple(value)  # type: ignore[arg-type]


def _stops(value: object) -> tuple[str, ...]:
    stops = [value] if isinstance(value, str) else value or []
    if not isinstance(stops, list) or not all(isinstance(each, str) and each for each in stops):
        raise RequestError("stop must be a text or a list of texts, none empty", param="stop")
    if len(stops) > MOST_STOPS:
        raise RequestError(f"stop must be at most {MOST_STOPS} texts, got {len(stops)}")
    return tuple(stops)
