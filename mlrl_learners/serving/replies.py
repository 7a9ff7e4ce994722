"""Responses in the formats of OpenAI's chat and completions APIs, complete or streamed.

With `return_token_ids`, ids are placed as in vLLM: `token_ids` in each choice, `prompt_token_ids`
in each choice of a completion, or next to the choices of a chat. `metadata.weight_version` is as in
SGLang.
"""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mlrl_learners.serving.answers import Answer, Job, ShownToken
from mlrl_learners.serving.tool_calls import calls_of

__all__ = ["Reply"]

LEAST_LOGPROB = -9999.0  # OpenAI's value for tokens that cannot be sampled
Choice = dict[str, Any]


@dataclass
class Reply:
    """The response to one job.

    Attributes:
        job: The job.
        tokenizer: Tokenizer of the model.
        id: Id of the response.
        created: Time of creation, Unix time in seconds.
    """

    job: Job
    tokenizer: Any
    id: str = field(default_factory=lambda: secrets.token_hex(12))
    created: int = field(default_factory=lambda: int(time.time()))

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """Return the body of a response that is not streamed."""
        asked = self.job.request
        choices = [self._choice(number, answer) for number, answer in enumerate(answers)]
        kind = "chat.completion" if asked.is_chat else "text_completion"
        body = self._body(kind, choices) | {"usage": self.usage(answers)}
        if asked.is_chat and asked.return_token_ids:
            body["prompt_token_ids"] = list(self.job.prompts[0])
        return body

    def opening(self) -> list[dict[str, Any]]:
        """Return the first events of a stream: roles, and prompt token ids if requested."""
        asked = self.job.request
        events = []
        for number in range(asked.num_answers if asked.is_chat else 0):
            event = self._event(number, "", (), {"role": "assistant"})
            if asked.return_token_ids:
                event["prompt_token_ids"] = list(self.job.prompts[0])
            events.append(event)
        return events

    def part(
        self, number: int, text: str, tokens: Sequence[ShownToken], start: int = 0
    ) -> dict[str, Any]:
        """Return the event of new text and tokens of an answer.

        Args:
            number: Index of the answer.
            text: New text; may be empty.
            tokens: New tokens.
            start: Offset of the new text in the answer, in characters.
        """
        return self._event(number, text, tokens, {}, start=start)

    def end(self, number: int, text: str, answer: Answer) -> dict[str, Any]:
        """Return the last event of an answer, with the text that has not been sent yet.

        Text of an answer that may call tools is not sent before, so that calls are whole.
        """
        text, calls = calls_of(text) if self.job.request.tools else (text, [])
        numbered = [{"index": place, **call} for place, call in enumerate(calls)]
        event = self._event(number, text, (), {"tool_calls": numbered} if calls else {})
        event["choices"][0]["finish_reason"] = _finish(answer, calls)
        return event

    def usage_event(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """Return the last event of a stream, with the token counts."""
        kind = "chat.completion.chunk" if self.job.request.is_chat else "text_completion"
        return self._body(kind, []) | {"usage": self.usage(answers)}

    def usage(self, answers: Sequence[Answer]) -> dict[str, int]:
        """Return the token counts of prompts and answers."""
        prompt = sum(map(len, self.job.prompts))
        written = sum(len(answer.token_ids) for answer in answers)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": written,
            "total_tokens": prompt + written,
        }

    def _body(self, kind: str, choices: list[Choice]) -> dict[str, Any]:
        prefix = "chatcmpl" if self.job.request.is_chat else "cmpl"
        return {
            "id": f"{prefix}-{self.id}",
            "object": kind,
            "created": self.created,
            "model": self.job.request.model,
            "choices": choices,
            "system_fingerprint": f"v{self.job.version}",
            "metadata": {"weight_version": str(self.job.version)},
        }

    def _choice(self, number: int, answer: Answer) -> Choice:
        asked = self.job.request
        tops = answer.tops or [()] * len(answer.token_ids)
        tokens = [
            ShownToken(number, *each)
            for each in zip(answer.token_ids, answer.logprobs, tops, strict=True)
        ]
        text, calls = calls_of(answer.text) if asked.tools else (answer.text, [])
        choice: Choice = {
            "index": number,
            "finish_reason": _finish(answer, calls),
            "logprobs": self._logprobs(tokens, 0),
        }
        if asked.is_chat:
            choice["message"] = {"role": "assistant", "content": text}
            if calls:
                choice["message"] |= {"content": text or None, "tool_calls": calls}
        else:
            choice["text"] = answer.text
        if asked.return_token_ids:
            choice["token_ids"] = list(answer.token_ids)
            if not asked.is_chat:
                choice["prompt_token_ids"] = list(self._prompt(number))
        return choice

    def _event(
        self,
        number: int,
        text: str,
        tokens: Sequence[ShownToken],
        delta: Mapping[str, Any],
        *,
        start: int = 0,
    ) -> dict[str, Any]:
        asked = self.job.request
        logprobs = self._logprobs(tokens, start) if tokens else None
        choice: Choice = {"index": number, "finish_reason": None, "logprobs": logprobs}
        if asked.is_chat:
            choice["delta"] = {**delta, "content": text}
        else:
            choice["text"] = text
        if asked.return_token_ids:
            choice["token_ids"] = [token.token_id for token in tokens]
            if not asked.is_chat and tokens and start == 0:
                choice["prompt_token_ids"] = list(self._prompt(number))
        return self._body("chat.completion.chunk" if asked.is_chat else "text_completion", [choice])

    def _prompt(self, number: int) -> Sequence[int]:
        return self.job.prompts[number // self.job.request.num_samples]

    def _logprobs(self, tokens: Sequence[ShownToken], start: int) -> dict[str, Any] | None:
        """Return the log-probabilities of tokens as the API has them; None if not requested."""
        asked = self.job.request
        if asked.num_top is None:
            return None
        if asked.is_chat:
            return {"content": [self._chat_logprob(token) for token in tokens]}
        names = [self._name(token.token_id) for token in tokens]
        offsets = []
        for token in tokens:
            offsets.append(start)
            start += len(self.tokenizer.decode([token.token_id]))
        return {
            "tokens": names,
            "token_logprobs": [_finite(token.logprob) for token in tokens],
            "top_logprobs": self._completion_tops(tokens),
            "text_offset": offsets,
        }

    def _completion_tops(self, tokens: Sequence[ShownToken]) -> list[dict[str, float]] | None:
        """Return log-probabilities of the top tokens and the sampled token, at each position."""
        if not self.job.request.num_top:
            return None
        return [
            {
                self._name(token_id): _finite(logprob)
                for token_id, logprob in (*token.top, (token.token_id, token.logprob))
            }
            for token in tokens
        ]

    def _chat_logprob(self, token: ShownToken) -> dict[str, Any]:
        top = [self._named(*each) for each in token.top]
        return {**self._named(token.token_id, token.logprob), "top_logprobs": top}

    def _named(self, token_id: int, logprob: float) -> dict[str, Any]:
        name = self._name(token_id)
        return {"token": name, "logprob": _finite(logprob), "bytes": list(name.encode())}

    def _name(self, token_id: int) -> str:
        if self.job.request.tokens_as_ids:
            return f"token_id:{token_id}"
        name: str = self.tokenizer.decode([token_id])
        return name


def _finish(answer: Answer, calls: Sequence[object]) -> str:
    return "tool_calls" if calls and answer.finish_reason == "stop" else answer.finish_reason


def _finite(logprob: float) -> float:
    return max(LEAST_LOGPROB, logprob)
