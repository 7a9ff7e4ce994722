"""Right spellings of options that are keys of a configuration, and of packages to install."""

import importlib.metadata
import json
import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import mlrl_envs
from mlrl_envs.naming import options_of
from mlrl_learners.cli.parser import UnknownOptionError
from mlrl_learners.config.option_places import PLACES
from mlrl_learners.config.run import known_keys
from mlrl_learners.errors import UnknownNameError

__all__ = ["local_install", "respelled"]

ENV_OPTIONS = ("split", "max_turns", "reward", "feedback", "scorer", "data_path")


def respelled(
    error: UnknownOptionError, sections: Sequence[str], words: Sequence[str]
) -> UnknownNameError:
    """Return the error with the spelling that the command accepts, if there is a certain one.

    Args:
        error: An option that the command does not have.
        sections: Sections of the configuration that the command reads.
        words: Words of the command line; an id among them tells options of an environment.
    """
    name = error.option.removeprefix("--").replace("-", "_")
    own = f"--{name.replace('_', '-')}"
    right = own if own in error.known else _override(name, sections, words)
    if right is None:
        return error
    return UnknownNameError(f"unknown option {error.option!r}; did you mean {right!r}?")


def local_install(message: str) -> str:
    """Return a message whose `pip install 'mlrl[...]'` names the folder mlrl was installed from."""
    place = _origin()
    if place is None:
        return message
    return re.sub(r"pip install '?mlrl\[(\w+)\]'?", rf"pip install '{place}[\1]'", message)


def _override(name: str, sections: Sequence[str], words: Sequence[str]) -> str | None:
    for key in known_keys():
        section, _, field = key.partition(".")
        if section in sections and field == name and key != "env.options":
            return f"--{key}"
    if "env" in sections and name in _env_options(words):
        return f"--env.{name}"
    if "learner" in sections and name in PLACES:
        return f"--learner.{PLACES[name][0]}"
    return None


def _env_options(words: Sequence[str]) -> Sequence[str]:
    for word in words:
        # A misspelled word is no reason to wait for a server.
        if "/" in word and "://" not in word and word in mlrl_envs.registry:
            return options_of(word) or ENV_OPTIONS
    return ENV_OPTIONS


def _origin() -> str | None:
    """Return the folder that mlrl was installed from; None if it came from an index."""
    try:
        text = importlib.metadata.distribution("mlrl").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        return None
    url = urlsplit(str(json.loads(text).get("url", ""))) if text else None
    return unquote(url.path) if url is not None and url.scheme == "file" else None
