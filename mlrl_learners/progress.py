"""Progress bars, shown if `tqdm` is installed."""

from typing import Any

__all__ = ["progress_bar"]


class _NoBar:
    """Hidden progress bar."""

    def __enter__(self) -> "_NoBar":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, _amount: float = 1) -> None:
        """Do nothing."""

    def set_postfix_str(self, _text: str) -> None:
        """Do nothing."""


def progress_bar(
    *, total: int, initial: int = 0, description: str | None = None, enabled: bool = True
) -> Any:  # noqa: ANN401 - a tqdm bar or _NoBar
    """Return a context manager with `update()` and `set_postfix_str(text)`, on stderr."""
    if not enabled:
        return _NoBar()
    try:
        from tqdm import tqdm
    except ImportError:
        return _NoBar()
    return tqdm(total=total, initial=initial, desc=description, dynamic_ncols=True)
