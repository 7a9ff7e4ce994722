"""Description of a training step that all sides share: prompts, sizes and rewards.

Only the standard library is imported here, because the interpreter of the peers imports this
module.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

__all__ = ["Work", "endless_folder", "length_reward", "padded_folder", "revision", "story_reward"]

END, PAD = "<jupyter_script>", "<empty_output>"  # not sampled by any model
# In the chat template: that of SmolLM2, and one that is not sampled.
END_OF_TURN, RARE_END_OF_TURN = "<|im_end|>", "<jupyter_output>"
TOKEN_IDS = {END: 15, PAD: 16}


@dataclass(frozen=True)
class Work:
    """Work of one step.

    Attributes:
        model: Folder that `transformers` loads.
        prompts: Prompts of the agents, for each task.
        group_size: Answers per agent at each node of the tree, G.
        max_new_tokens: Tokens per answer.
        turns: Turns of an episode; every joint action is continued.
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
        """Names of the agents, in order."""
        return list(self.prompts[0])

    def as_setup(self) -> dict[str, object]:
        """Return the setup of a worker."""
        return asdict(self)

    def facts(self) -> dict[str, object]:
        """Return the sizes of the work, for the results."""
        sizes = {"tasks": len(self.prompts), "agents": len(self.agents)}
        facts = {name: value for name, value in asdict(self).items() if name != "prompts"}
        return {**facts, **sizes, "model": "SmolLM2-135M-Instruct"}


def story_reward(setups: Sequence[str], stories: Sequence[str]) -> list[float]:
    """Score pairs by their length ratio, the published formula of the story task."""
    return [_ratio_score(len(one), len(other)) for one, other in zip(setups, stories, strict=True)]


def length_reward(text: str) -> float:
    """Score an answer by its length, with the maximum at 400 characters."""
    return math.exp(-abs(len(text) - 400) / 400)


def revision(prompt: str, answer: str) -> str:
    """Return the prompt of the second turn."""
    return f"{prompt}\n\nYou wrote:\n{answer}\n\nWrite it again, and better."


def endless_folder(model: Path, target: Path) -> str:
    """Make a folder with links to a model and an end-of-sequence token that is never sampled.

    Every answer then has the largest length, on all sides. The chat template ends turns with
    another rare token, because mlrl also ends an answer at the token that ends a turn.
    """
    folder = _linked_folder(model, target, {"eos": END, "pad": PAD})
    template = target / "chat_template.jinja"
    text = template.read_text().replace(END_OF_TURN, RARE_END_OF_TURN)
    template.unlink()  # a link
    template.write_text(text)
    return folder


def padded_folder(model: Path, target: Path) -> str:
    """Make a folder with links to a model and a padding token that occurs in no text.

    SmolLM2 pads with the token that ends a chat turn, and `comlrl` treats the first such token of a
    prompt as the end of the prompt: every answer would be empty.
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
    path.unlink()  # a link; the file of the model itself must not change
    path.write_text(json.dumps(content))
