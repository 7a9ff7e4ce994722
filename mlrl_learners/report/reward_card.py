"""Reward card of a run: what honest answers and the worst exploit earn under its reward.

The audits are those of `benchmarks/audits`, which are part of the package. An environment or a
reward that was not audited, such as a function of one's own, has no card.
"""

import functools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mlrl_learners.report.html import Html, tag
from mlrl_learners.report.overview import tile

__all__ = ["MAX_RATIO", "RewardCard", "draw_reward_card", "reward_card_of"]

MAX_RATIO = 0.5
"""Highest quotient of the worst exploit and the honest mean of a reward to train on."""

_HERE = Path(__file__).parent
_FOLDERS = (_HERE / "audits", _HERE.parents[1] / "benchmarks/audits")
_NAME = re.compile(r"mlrl/([a-z0-9-]+)")
_MODE = re.compile(r"[a-z]+")
_DEFAULT_MODE = "grounded"


@dataclass(frozen=True)
class RewardCard:
    """Figures of a stored audit.

    Attributes:
        reward: Mode of the reward; empty in games, whose reward is the payoff.
        honest: What honest answers earn on the mean; in a game, the best script.
        worst: Name of the attack that earns most.
        worst_earns: Best mean over tasks that the attack earns; in a game, its mean.
        ratio: `worst_earns` divided by `honest`; None in a game that is not cooperative.
        is_sound: Whether the reward is fit to train on: the ratio is at most `MAX_RATIO`; in a
            game, no text without a move earns more than the best script.
    """

    reward: str
    honest: float
    worst: str
    worst_earns: float
    ratio: float | None
    is_sound: bool


def reward_card_of(options: Mapping[str, str]) -> RewardCard | None:
    """Return the card of the environment and the reward in a configuration; None without one.

    Args:
        options: Dotted name -> value, as in `mlrl_learners.report.configuration.options_of`.
    """
    name = _NAME.fullmatch(options.get("env.id", ""))
    mode = options.get("env.options.reward", _DEFAULT_MODE)
    if name is None or not _MODE.fullmatch(mode):
        return None
    return _card(f"{name[1]}.{mode}", mode) or _card(name[1], "")


def draw_reward_card(card: RewardCard) -> Html:
    """Return the panel of a reward card."""
    who = "honest answers" if card.reward else "best script"
    attack = card.worst.replace("_", " ")
    tiles = [
        tile(f"{who}, mean", f"{card.honest:.2f}"),
        tile(f"worst attack: {attack}", f"{card.worst_earns:.2f}"),
    ]
    if card.ratio is not None:
        limit = f"ratio; at most {MAX_RATIO} to train on" if card.reward else "ratio"
        tiles.append(tile(limit, f"{card.ratio:.2f}"))
    verdict = tag("span", "fit to train on", class_="pill good")
    if not card.is_sound:
        verdict = tag("span", "exploits earn too much: not for training", class_="pill warn")
    what = f"Audit of the reward {card.reward}" if card.reward else "Audit of the payoff"
    return tag("section", tag("h2", what, " ", verdict), tag("div", tiles, class_="tiles"))


@functools.lru_cache(maxsize=64)
def _card(name: str, mode: str) -> RewardCard | None:
    file = next((path for folder in _FOLDERS if (path := folder / f"{name}.json").is_file()), None)
    if file is None:
        return None
    audit = json.loads(file.read_text("utf-8"))["audit"]
    if mode:
        worst = next(each for each in audit["families"] if each["name"] == audit["worst"])
        ratio = audit["ratio"]
        is_sound = ratio is not None and ratio <= MAX_RATIO
        return RewardCard(
            mode, audit["honest_mean"], audit["worst"], worst["best"], ratio, is_sound
        )
    seats = "all" if audit["cooperative"] else "one"
    tried = [each for each in audit["results"] if each["name"] == audit["worst"]]
    worst = next((each for each in tried if each["seats"] == seats), tried[0])
    is_sound = all(each["names_move"] for each in audit["results"] if each["pays"])
    return RewardCard(
        "", audit["honest_mean"], worst["name"], worst["mean"], audit["ratio"], is_sound
    )
