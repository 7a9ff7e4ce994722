"""Options that task families have in common."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from mlrl_envs.config import check_choice, checked_path
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.feedback import get_feedback
from mlrl_envs.models import Endpoint, as_endpoint
from mlrl_envs.models.scorers import as_scorer
from mlrl_envs.types import TextScorer

__all__ = ["PROSE_SCORER", "DataConfig", "FamilyConfig"]

PROSE_SCORER = {"kind": "likelihood", "dtype": "bfloat16"}
"""Scorer of `reward="judged"` in prose, if the caller names none."""


@dataclass(frozen=True)
class FamilyConfig:
    """Options of every family.

    Attributes:
        split: The split that tasks are drawn from.
        reward: The reward function: `"grounded"` (bounded, hardened against exploits), `"paper"`
            (the published formula), or another one that the family offers.
        max_turns: Maximum number of joint actions in an episode, at least 1.
        feedback: The text about the last answer in the next observation: the name of a feedback
            mode or `"module:function"`.
        expert: The model that suggests edits with `feedback="expert_edits"`: an `Endpoint`, or a
            mapping with `base_url`, `model` and other fields of it.
        scorer: The model that scores texts with `reward="judged"`: a `TextScorer`, the name of a
            kind (`"likelihood"`), a mapping with `kind` and the options of that kind, or
            `"module:function"`; see `mlrl_envs.models.scorers.as_scorer`. None uses the `SCORER`
            of the family.
        communication: `"broadcast"` shows agents the answers of their teammates from turn 2 on.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "paper")
    SCORER: ClassVar[object] = None  # of reward="judged"

    split: str = "train"
    reward: str = "grounded"
    max_turns: int = 1
    feedback: str = "diagnostics"
    expert: Endpoint | Mapping[str, Any] | None = None
    scorer: TextScorer | Mapping[str, Any] | str | None = None
    communication: str = "none"

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        for name in ("split", "reward", "feedback", "communication"):
            if not isinstance(getattr(self, name), str):
                raise InvalidArgumentError(f"{name} must be a str, got {getattr(self, name)!r}")
        if isinstance(self.max_turns, bool) or not isinstance(self.max_turns, int):
            raise InvalidArgumentError(f"max_turns must be an int, got {self.max_turns!r}")
        if self.max_turns < 1:
            raise InvalidArgumentError(f"max_turns must be at least 1, got {self.max_turns}")
        check_choice("reward", self.reward, self.REWARDS)
        check_choice("communication", self.communication, ("none", "broadcast"))
        self._check_expert()
        self._check_scorer()
        get_feedback(self.feedback)

    def _check_expert(self) -> None:
        if (self.feedback == "expert_edits") != (self.expert is not None):
            raise InvalidArgumentError(
                "feedback 'expert_edits' and expert={'base_url': ..., 'model': ...} go together, "
                f"got feedback {self.feedback!r} {'without' if self.expert is None else 'with'} one"
            )
        if self.expert is not None:
            object.__setattr__(self, "expert", as_endpoint(self.expert))

    def _check_scorer(self) -> None:
        scorer: object = self.scorer
        if self.reward != "judged":
            if scorer is not None:
                raise InvalidArgumentError(
                    f"a scorer is read by reward 'judged' only, got reward {self.reward!r} with one"
                )
            return
        scorer = self.SCORER if scorer is None else scorer
        if scorer is None:
            raise InvalidArgumentError(
                "reward 'judged' needs a text scorer: pass scorer='likelihood', "
                "scorer={'kind': ..., 'model': ...} or an object with score_many"
            )
        object.__setattr__(self, "scorer", as_scorer(scorer))


@dataclass(frozen=True)
class DataConfig(FamilyConfig):
    """Options of every family whose tasks are rows of a file.

    Attributes:
        data_path: A file with the rows; None searches the default locations.
    """

    data_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check types and ranges.

        Raises:
            InvalidArgumentError: If a value has the wrong type or is outside its range.
        """
        super().__post_init__()
        object.__setattr__(self, "data_path", checked_path("data_path", self.data_path))

    @property
    def path(self) -> str | None:
        """`data_path` as a string."""
        return None if self.data_path is None else os.fspath(self.data_path)
