"""Fingerprints: hashes that tell whether two results were scored on the same tasks and rules."""

import functools
import hashlib
from typing import Any

from mlrl_envs.shell.definitions import reachable
from mlrl_envs.shell.env import TextParallelEnv

__all__ = ["fingerprint"]

# Processes of the sandbox import its modules by name, so all of them decide a verdict.
_WHOLE = ("mlrl_envs.sandbox",)
_WRAPPERS = (
    "mlrl_envs.models.",
    "mlrl_envs.workflows.",
    "mlrl_envs.shell.custom",
)  # their families have another one
# The wrapper, clients of models and error messages have no part in a score. Golden files guard
# the wrapper.
_EXCLUDED = ("mlrl_envs.shell", "mlrl_envs.models", "mlrl_envs.errors")


def fingerprint(env: Any) -> dict[str, str]:  # noqa: ANN401  any environment
    """Return SHA-256 hashes of what decides a score.

    The scorer's hash covers the syntax trees of all definitions that the class of the task family
    reaches: its methods, its options and their defaults, prompts, rewards, feedback, and the
    sandbox if it runs programs. Comments, docstrings, annotations of functions, and the place of a
    definition in files do not change it.

    Args:
        env: An environment.

    Returns:
        `data`: the hash of every task of the split, in order; `scorer`: the hash of the code and,
        if the family has a text scorer, of its fingerprint. An empty mapping for environments that
        are not a `TextParallelEnv`; those of a server have an attribute `fingerprint`.
    """
    if not isinstance(env, TextParallelEnv):
        return dict(getattr(env, "fingerprint", None) or {})  # as its server told
    digest = hashlib.sha256()
    for task in env.family.tasks:
        digest.update(repr(task).encode("utf-8", "surrogatepass"))
    family: Any = env.family
    added = []
    while type(family).__module__.startswith(_WRAPPERS):  # wraps another family
        if hasattr(family, "graph"):
            added.append(f"{_scorer_hash(*_place(family))} {family.graph!r}")
        elif hasattr(family, "rules"):
            added.append(family.rules.fingerprint)
        family = family.family
    rules = _scorer_hash(*_place(family))
    scorer = getattr(getattr(family, "config", None), "scorer", None)
    if scorer is not None:
        rules = hashlib.sha256(f"{rules} {scorer.fingerprint}".encode()).hexdigest()
    for each in added:  # graphs and own rewards decide a score, too
        rules = hashlib.sha256(f"{rules} {each}".encode("utf-8", "surrogatepass")).hexdigest()
    return {"data": digest.hexdigest(), "scorer": rules}


def _place(family: object) -> tuple[str, str]:
    """Return the module of a family's class, and the name of its top-level definition there."""
    return type(family).__module__, type(family).__qualname__.split(".", maxsplit=1)[0]


@functools.cache
def _scorer_hash(module: str, name: str) -> str:
    packages = ("mlrl_envs", module.split(".", maxsplit=1)[0])
    found = reachable(module, name, packages=packages, whole=_WHOLE, excluded=_EXCLUDED)
    return hashlib.sha256("\n".join(sorted(found)).encode()).hexdigest()
