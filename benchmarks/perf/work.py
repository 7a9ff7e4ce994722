"""The work of a training step, in terms that every side understands.

The standard library alone is imported here, because the peers' interpreters import this file too.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Work", "endless_folder", "length_reward", "padded_folder", "revision", "story_reward"]

END, PAD = "<jupyter_script>", "<empty_output>"  # which no answer holds
TOKEN_IDS = {END: 15, PAD: 16}


@dataclass(frozen=True)
class Work:
    """One step, as both sides do it.

    Attributes:
        model: A folder that `transformers` loads.
        prompts: For each task, what each agent reads.
        group_size: Answers an agent at each node of the tree, G.
        max_new_tokens: Tokens of every answer.
        turns: Joint actions an episode; each of them is gone on from.
    """

    model: str
    prompts: Sequence[Mapping[str, str]]
    group_size: int = 4
    max_new_tokens: int = 96
    turns: int = 1
    temperature: float = 0.8
    top_p: float = 0.95
    learning_rate: float = 5e-6

    @property
    def agents(self) -> list[str]:
        """Their names, in order."""
        return list(self.prompts[0])

    def as_setup(self) -> dict[str, object]:
        """Return what a worker is sent."""
        return asdict(self)

    def facts(self) -> dict[str, object]:
        """Return what a figure says of it: everything but texts and paths."""
        sizes = {"tasks": len(self.prompts), "agents": len(self.agents)}
        facts = {name: value for name, value in asdict(self).items() if name != "prompts"}
        return {**facts, **sizes, "model": "SmolLM2-135M-Instruct"}


def story_reward(setups: Sequence[str], stories: Sequence[str]) -> list[float]:
    """Score pairs by the length ratio alone, the published formula of the story task."""
    return [_ratio_score(len(one), len(other)) for one, other in zip(setups, stories, strict=True)]


def length_reward(text: str) -> float:
    """Score one answer by its length alone, best at 400 characters."""
    return math.exp(-abs(len(text) - 400) / 400)


def revision(prompt: str, answer: str) -> str:
    """Return what is read at a second turn."""
    return f"{prompt}\n\nYou wrote:\n{answer}\n\nWrite it again, and better."


def endless_folder(model: Path, target: Path) -> str:
    """Link a model's files into a folder whose end of sequence is a token it never writes.

    Every answer is then as long as it may be, on all sides.
    """
    return _linked_folder(model, target, {"eos": END, "pad": PAD})


def padded_folder(model: Path, target: Path) -> str:
    """Link a model's files into a folder that pads with a token no text holds.

    SmolLM2 pads with what ends a turn of its chats, and `comlrl` takes the first such token of a
    prompt for the end of the prompt: every answer is then empty there, and nothing is learned.
    """
    return _linked_folder(model, target, {"pad": PAD})


def _linked_folder(model: Path, target: Path, tokens: Mapping[str, str]) -> str:
    for path in model.iterdir():
        (target / path.name).symlink_to(path)
    ids = {f"{kind}_token_id": TOKEN_IDS[token] for kind, token in tokens.items()}
    for name in ("config.json", "generation_config.json"):
        _edit(target / name, ids)
    _edit(
        target / "tokenizer_config.json", {f"{kind}_token": token for kind, token in tokens.items()}
    )
    return str(target)


def _ratio_score(first: int, second: int) -> float:
    if not first:
        return 0.0
    ratio = second / first
    return math.exp(-max(2.0 - ratio, ratio - 3.0, 0.0))


def _edit(path: Path, changes: Mapping[str, object]) -> None:
    content = {**json.loads(path.read_text()), **changes}
    path.unlink()  # a link to the model's own file, which stays as it is
    path.write_text(json.dumps(content))
