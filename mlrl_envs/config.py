"""Options of families as frozen dataclasses; an unknown keyword is an error that names it."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar, cast

from mlrl_envs.errors import InvalidArgumentError, unknown_name
from mlrl_envs.models.endpoint import Endpoint, as_endpoint

__all__ = [
    "SHELL_OPTIONS",
    "DataConfig",
    "FamilyConfig",
    "build_config",
    "check_choice",
    "check_number",
    "checked_path",
]

SHELL_OPTIONS = ("sandbox", "limits", "render_mode")
ConfigT = TypeVar("ConfigT", bound="FamilyConfig")


@dataclass(frozen=True)
class FamilyConfig:
    """Options that every family takes.

    Attributes:
        split: Which rows to draw tasks from.
        reward: How turns are scored: `"grounded"` (bounded, hardened), `"paper"` (the published
            formula), or another one that the family has.
        max_turns: Joint actions an episode may have, at least 1.
        feedback: What the next observation says of the last answer: a mode's name or
            `"module:function"`.
        expert: Who suggests edits with `feedback="expert_edits"`: an `Endpoint`, or a mapping with
            `base_url`, `model` and other fields of it.
        communication: `"broadcast"` shows agents what their teammates wrote, from turn 2 on.
    """

    REWARDS: ClassVar[tuple[str, ...]] = ("grounded", "paper")

    split: str = "train"
    reward: str = "grounded"
    max_turns: int = 1
    feedback: str = "diagnostics"
    expert: Endpoint | Mapping[str, Any] | None = None
    communication: str = "none"

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
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

    def _check_expert(self) -> None:
        if (self.feedback == "expert_edits") != (self.expert is not None):
            raise InvalidArgumentError(
                "feedback 'expert_edits' and expert={'base_url': ..., 'model': ...} go together, "
                f"got feedback {self.feedback!r} {'without' if self.expert is None else 'with'} one"
            )
        if self.expert is not None:
            object.__setattr__(self, "expert", as_endpoint(self.expert))


@dataclass(frozen=True)
class DataConfig(FamilyConfig):
    """Options that every family with rows in a file takes.

    Attributes:
        data_path: A file with the rows; None looks in the usual places.
    """

    data_path: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        """Check ranges.

        Raises:
            InvalidArgumentError: If a value is outside its range.
        """
        super().__post_init__()
        object.__setattr__(self, "data_path", checked_path("data_path", self.data_path))

    @property
    def path(self) -> str | None:
        """`data_path` as a string."""
        return None if self.data_path is None else os.fspath(self.data_path)


def checked_path(name: str, value: object) -> str | None:
    """Return a path as a string.

    Raises:
        InvalidArgumentError: If it is neither a path nor None.
    """
    if not isinstance(value, str | os.PathLike | None):
        raise InvalidArgumentError(f"{name} must be a path, got {value!r}")
    return None if value is None else os.fspath(value)


def build_config(config_type: type[ConfigT], options: Mapping[str, Any]) -> ConfigT:
    """Build a family's configuration from keywords.

    Raises:
        UnknownNameError: If a keyword is none of the configuration's fields.
        InvalidArgumentError: If a value is outside its range.
    """
    known = [field.name for field in fields(config_type)]
    for name in options:
        if name not in known:
            raise unknown_name("option", name, [*known, *SHELL_OPTIONS])
    return config_type(**options)


def check_choice(kind: str, value: object, choices: Sequence[str]) -> None:
    """Raise `UnknownNameError` unless `value` is one of `choices`."""
    if value not in choices:
        raise unknown_name(kind, value, choices)


def check_number(name: str, value: object) -> None:
    """Raise `InvalidArgumentError` unless `value` is a finite number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(cast("float", value)):
        raise InvalidArgumentError(f"{name} must be a finite number, got {value!r}")
