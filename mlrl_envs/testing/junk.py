"""Texts that break careless parsers."""

__all__ = ["JUNK_TEXTS"]

JUNK_TEXTS = (
    "",
    " \n\t\n",
    "\x00",
    "\ud800 and \udfff",
    "\U0001f642 \u202e \u0000 \ufeff",
    "```python\n",
    "``````\n```",
    "```python\ndef f(:\n```",
    "(" * 10_000,
    "x" * 1_000_000,
    "def f():\n" + " " * 5 + "return (" * 500,
    "import os\n" * 2_000,
    "<tool_call>{" * 100,
    "None",
)
