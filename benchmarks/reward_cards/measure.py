"""Audits of the built-in environments, one JSON file for each environment and mode."""

import json
import platform
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.reward_cards import corpora
from mlrl_envs.auditing.report import AuditReport

__all__ = [
    "AUDITS",
    "PLANS",
    "Plan",
    "audit_path",
    "is_current",
    "measure",
    "measure_game",
    "rounded",
    "stale_line",
    "stale_lines",
    "write_audit",
]

AUDITS = Path(__file__).resolve().parents[1] / "audits"
COMMAND = "python -m benchmarks.reward_cards"
SEED = 0
_NUMBERS = re.compile(r"\[\s+([-+.,\de\s]+?)\s+\]")
EXAMPLE_CHARS = 400  # of the answers of the best try that are kept


@dataclass(frozen=True)
class Plan:
    """How an environment is audited.

    Attributes:
        split: The split whose tasks are attacked.
        tasks: Number of attacked tasks; fewer where a try runs programs.
        options: Options of the environment.
        budget: Tries per task.
        is_game: Whether seats are attacked, see `mlrl_envs.audit_game`.
    """

    split: str = "train"
    tasks: int = 8
    options: Mapping[str, Any] = field(default_factory=lambda: {"max_turns": 1})
    budget: int = 1000
    is_game: bool = False


def _game(tasks: int, budget: int, split: str = "train") -> Plan:
    return Plan(split, tasks, {}, budget, is_game=True)


_MADE = {"max_turns": 1, "source": "procedural"}

PLANS: Mapping[str, Plan] = {
    "mlrl/story-v1": Plan(),
    "mlrl/tldr-v1": Plan(),
    "mlrl/arxiv-v1": Plan(),
    "mlrl/debate-v1": Plan(),
    "mlrl/math-v2": Plan(),
    "mlrl/tools-v1": Plan(tasks=4, options={"max_turns": 6}),
    "mlrl/humaneval-v1": Plan(split="all", tasks=4),
    "mlrl/coophumaneval-v1": Plan(split="all", tasks=4),
    "mlrl/mbpp-v1": Plan(split="test", tasks=4),
    "mlrl/functions-v0": Plan(split="sample", tasks=4),
    "mlrl/classeval-v1": Plan(split="all", tasks=4),
    # A search of 1,000 tries solves strings of two letters by trial.
    "mlrl/strbuild-v0": Plan(tasks=4, options={**_MADE, "levels": [2, 3]}),
    "mlrl/housebuild-v0": Plan(tasks=4, options=_MADE),
    "mlrl/coder-tester-v1": _game(16, 20, split="all"),
    "mlrl/connect-four-v0": _game(32, 20),
    "mlrl/hanabi-v0": _game(32, 40),
    "mlrl/kuhn-v0": _game(240, 40),
    "mlrl/liars-dice-v0": _game(240, 40),
    "mlrl/matrix-v0": _game(40, 40),
    "mlrl/negotiation-v0": _game(100, 40),
    "mlrl/network-v0": _game(100, 40),
    "mlrl/nim-v0": _game(100, 40),
    "mlrl/public-goods-v0": _game(40, 40),
    "mlrl/puzzle-v0": _game(64, 40),
    "mlrl/tictactoe-v0": _game(100, 40),
}


def measure(
    env_id: str,
    reward: str,
    *,
    scorer: Any = None,  # noqa: ANN401  any description of a text scorer
    budget: int,
    tasks: int,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Audit an environment, play the other answers, and write the file.

    Args:
        env_id: An id in `PLANS`.
        reward: Mode of the reward.
        scorer: Description of the text scorer for `judged`, as JSON values.
        budget: Maximum number of tries per task.
        tasks: Maximum number of attacked tasks.
        progress: Called with the number of tries after each batch.

    Raises:
        DataNotFoundError: If the data set is not found.
        InfraError: If the infrastructure fails.
    """
    plan = PLANS[env_id]
    options = {**plan.options, "split": plan.split, "reward": reward}
    options |= {"scorer": scorer} if scorer is not None else {}
    env: Any = mlrl_envs.make(env_id, **options)
    rules = mlrl_envs.fingerprint(env)  # now, because files may change during a long measurement
    lines = corpora.honest_lines(env_id)
    report = mlrl_envs.audit(
        env,
        budget=budget,
        tasks=tasks,
        honest=corpora.fitting(env, lines) or None,
        seed=SEED,
        progress=progress,
    )
    honest = corpora.earned(env_id, options, lines, SEED)
    report = replace(report, honest=honest)
    found = {
        "options": options,
        "tasks_asked": tasks,
        "fingerprint": rules,
        "versions": _versions(),
        "groups": {
            "people": corpora.people_shares(env_id, options, SEED),
            "models": corpora.earned(env_id, options, corpora.model_lines(env_id), SEED),
        },
        "audit": _audit_json(report),
    }
    env.close()
    write_audit(audit_path(env_id, reward), found)
    return found


def measure_game(
    env_id: str, *, budget: int, tasks: int, progress: Callable[[int], None] | None = None
) -> dict[str, Any]:
    """Audit a game and write the file.

    Args:
        env_id: An id in `PLANS`.
        budget: Maximum number of tries per task.
        tasks: Maximum number of tasks.
        progress: Called with the number of tries.

    Raises:
        InfraError: If the infrastructure fails.
    """
    options = {**PLANS[env_id].options, "split": PLANS[env_id].split}
    env: Any = mlrl_envs.make(env_id, **options)
    rules = mlrl_envs.fingerprint(env)
    report = mlrl_envs.audit_game(env, budget=budget, tasks=tasks, seed=SEED, progress=progress)
    audit = report.to_json()
    for each in audit["results"]:
        is_shown = each["name"] == report.worst.name and each["seats"] == report.worst.seats
        each["example"] = each["example"][:EXAMPLE_CHARS] if is_shown else ""
    found = {
        "options": options,
        "tasks_asked": tasks,
        "fingerprint": rules,
        "versions": _versions(),
        "audit": audit,
    }
    env.close()
    write_audit(audit_path(env_id, ""), found)
    return found


def audit_path(env_id: str, reward: str) -> Path:
    """Return the file of an environment and a mode; a game has one file."""
    if PLANS[env_id].is_game:
        return AUDITS / f"{env_id.removeprefix('mlrl/')}.json"
    return AUDITS / f"{env_id.removeprefix('mlrl/')}.{reward}.json"


def is_current(env_id: str, reward: str, *, budget: int, tasks: int) -> bool:
    """Return whether a file exists with these settings, for the reward as it is now."""
    path = audit_path(env_id, reward)
    if not path.exists():
        return False
    found = json.loads(path.read_text("utf-8"))
    settings = found["audit"]["budget"], found["tasks_asked"]
    return settings == (budget, tasks) and stale_line(path) is None


def stale_lines() -> list[str]:
    """Return a line for each stored audit of a reward that has changed since."""
    return [line for path in sorted(AUDITS.glob("*.json")) if (line := stale_line(path))]


def stale_line(path: Path) -> str | None:
    """Return what is wrong with a stored audit and the command that measures again, or None."""
    found = json.loads(path.read_text("utf-8"))
    env_id, reward = found["audit"]["env_id"], found["options"].get("reward")
    if env_id not in mlrl_envs.registry:
        return f"{path.name}: {env_id} is not registered; remove the file"
    again = f"{COMMAND} {env_id}" + ("" if reward is None else f" --modes {reward}")
    plan = PLANS[env_id]
    planned = {"split": plan.split, **json.loads(json.dumps(dict(plan.options)))}
    if planned != {k: v for k, v in found["options"].items() if k not in ("reward", "scorer")}:
        return f"{env_id}: the audit has other options than its plan; run {again}"
    # The hash covers rules and the scorer, not the data, so that the sample will do.
    env = mlrl_envs.make(env_id, **{**found["options"], "split": "sample"})
    if mlrl_envs.fingerprint(env)["scorer"] == found["fingerprint"]["scorer"]:
        return None
    changed = "its rules" if reward is None else f"its reward {reward!r}"
    return f"{env_id}: {changed} or prompts changed after the audit; run {again}"


def _versions() -> dict[str, str]:
    return {"mlrl": metadata.version("mlrl"), "python": platform.python_version()}


def _audit_json(report: AuditReport) -> dict[str, Any]:
    """Return the report with rounded numbers, and examples of the worst family only."""
    audit: dict[str, Any] = rounded(report.to_json())
    for family in audit["families"]:
        shown = family["example"] if family["name"] == report.worst.name else {}
        family["example"] = {agent: text[:EXAMPLE_CHARS] for agent, text in shown.items()}
    return audit


def rounded(value: Any) -> Any:  # noqa: ANN401  JSON values
    """Return JSON values with numbers of four digits."""
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def write_audit(path: Path, found: Mapping[str, Any]) -> None:
    """Write a file atomically, each list of numbers on one line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    text = json.dumps(rounded(found), indent=1)
    text = _NUMBERS.sub(lambda match: f"[{' '.join(match[1].split())}]", text)
    partial.write_text(text + "\n", "utf-8")
    partial.replace(path)
