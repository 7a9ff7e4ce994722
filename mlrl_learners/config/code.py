"""Section `code` of a configuration: code that is imported before anything else."""

from dataclasses import dataclass, field

__all__ = ["CodeConfig"]


@dataclass(frozen=True)
class CodeConfig:
    """Code that registers environments, learners or loggers.

    Attributes:
        imports: Modules and Python files that are imported before anything else; a run stores
            absolute paths.
    """

    imports: list[str] = field(default_factory=list)
