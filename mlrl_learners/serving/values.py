"""Typed access to the fields of a JSON object; a field that is null counts as missing."""

from collections.abc import Iterable, Mapping

from mlrl_learners.serving.errors import RequestError

__all__ = ["Fields"]

MOST_SHOWN = 80


class Fields:
    """Fields of a JSON object that have not been read yet.

    Args:
        body: The object.

    Raises:
        RequestError: If `body` is not an object. All methods raise it for values of a wrong type or
            out of range.
    """

    def __init__(self, body: object) -> None:
        if not isinstance(body, dict):
            raise RequestError("the body must be a JSON object")
        self._left = {name: value for name, value in body.items() if value is not None}

    def take(self, name: str) -> object:
        """Return a field and mark it as read; None if it is missing."""
        return self._left.pop(name, None)

    def text(self, name: str) -> str:
        """Return a field that must be a non-empty string."""
        value = self.take(name)
        if not isinstance(value, str) or not value:
            raise RequestError(f"{name} must be a text, got {_shown(value)}", param=name)
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean field; false if it is missing."""
        value = self.take(name)
        if value is not None and not isinstance(value, bool):
            raise RequestError(f"{name} must be true or false, got {_shown(value)}", param=name)
        return value is True

    def integer(
        self, name: str, default: int | None, low: int, high: int = 2**31 - 1
    ) -> int | None:
        """Return an integer field in `[low, high]`."""
        value = self.take(name)
        if value is None:
            return default
        if type(value) is not int or not low <= value <= high:
            raise RequestError(
                f"{name} must be an int from {low} to {high}, got {_shown(value)}", param=name
            )
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        """Return a number field in `[low, high]`."""
        value = self.take(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not low <= value <= high:  # type: ignore[operator]
            raise RequestError(
                f"{name} must be a number from {low:g} to {high:g}, got {_shown(value)}", param=name
            )
        return float(value)  # type: ignore[arg-type]

    def refuse_rest(
        self, neutral: Mapping[str, tuple[object, ...]], ignored: Iterable[str]
    ) -> None:
        """Raise an error if a field has not been read and is not accepted.

        Args:
            neutral: Fields that are accepted with one of these values.
            ignored: Fields that are accepted with any value.
        """
        for name, value in self._left.items():
            if name in ignored or value in neutral.get(name, ()):
                continue
            if name in neutral:
                message = f"{name} is not supported here, got {_shown(value)}; leave it out"
            else:
                message = f"unknown field {name[:MOST_SHOWN]!r}"
            raise RequestError(message, param=name[:MOST_SHOWN])


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
