"""Trial of every game of TextArena; writes the list of games that the adapter opens.

    python -m benchmarks.textarena.games              # try all games, half an hour on one core
    python -m benchmarks.textarena.games --games Nim-v0 Chess-v0
    python -m benchmarks.textarena.games --table      # write the table of docs/textarena.md only

Each game is tried in two processes with different hash seeds and without a network; each variant
must start, follow the contract of `mlrl_envs.check_env`, and play probing episodes as TextArena's
own loop does, without copies. Games that were tried before are kept, unless they are named. A game
whose code does not compile can be tried again by its name with a newer Python; the list keeps which
one it needs. Needs the extra `mlrl[textarena]`.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mlrl_envs.interop import textarena_games
from mlrl_envs.interop.textarena_games import ArenaGame, games

__all__ = ["main", "table", "with_python"]

DATA = Path(textarena_games.__file__).with_suffix(".json")
PAGE = Path(__file__).parents[2] / "docs" / "textarena.md"
BEGIN, END = "<!-- games: begin -->", "<!-- games: end -->"
GAME_SECONDS = 3600
NOT_TRIED = "not tried yet"
NO_COMPILE = "does not compile on"
Results = dict[str, dict[str, Any]]


def main(words: Sequence[str] | None = None) -> None:
    """Try games, and write the list and the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--games", nargs="*", help="games to try again; without, all new ones")
    parser.add_argument("--table", action="store_true", help="write only the table of the docs")
    arguments = parser.parse_args(words)
    if not arguments.table:
        _try(arguments.games)
    textarena_games.forget()
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    whole = f"{before}{BEGIN}\n{table(games())}\n{END}{rest.partition(END)[2]}"
    PAGE.write_text(whole, encoding="utf-8")


def _try(chosen: Sequence[str] | None) -> None:
    """Try the chosen games, or all new ones; write the list after each."""
    stored: dict[str, Any] = json.loads(DATA.read_text()) if DATA.exists() else {"games": {}}
    version, names = _known()
    stored["textarena"] = version
    for name in names:
        stored["games"].setdefault(name, {"": {"reason": NOT_TRIED}})
    new = [name for name in names if _reason_of(stored["games"][name]) == NOT_TRIED]
    for name in chosen or new:
        before = stored["games"].get(name, {})
        stored["games"][name] = with_python(before, _tried(name))
        stored["games"] = dict(sorted(stored["games"].items()))
        DATA.write_text(_as_text(stored), encoding="utf-8")
        is_open = [key for key, each in stored["games"][name].items() if "reason" not in each]
        print(name, f"{len(is_open)} of {len(stored['games'][name])} variants", flush=True)


def table(known: Mapping[str, ArenaGame]) -> str:
    """Return the table of all games in Markdown."""
    lines = ["| game | players | variants | not opened |", "|---|---|---|---|"]
    for name, game in known.items():
        players = sorted({count for each in game.open.values() for count in each.players})
        shown = _span(players)
        variants = ", ".join(f"`{key or '(default)'}`" for key in game.open) or "none"
        reasons: dict[str, list[str]] = {}
        for key, each in game.variants.items():
            reason = "needs Python {}.{}".format(*each.python) if each.python else each.reason
            if reason:
                reasons.setdefault(reason, []).append(f"`{key or '(default)'}`")
        refused = "; ".join(
            reason if len(keys) == len(game.variants) else f"{', '.join(keys)}: {reason}"
            for reason, keys in reasons.items()
        )
        lines.append(f"| `{name}` | {shown} | {variants} | {refused} |")
    return "\n".join(lines)


def with_python(before: Results, after: Results) -> Results:
    """Add the version of Python to variants that an older one does not compile."""
    newer = "{}.{}".format(*sys.version_info)
    for variant, result in after.items():
        # One reason stands for all variants where a process failed.
        old = before.get(variant) or before.get("", {})
        needed = newer if NO_COMPILE in old.get("reason", "") else old.get("python")
        if needed and "reason" not in result:
            result["python"] = needed
    return after


def _reason_of(variants: Results) -> object:
    return variants.get("", {}).get("reason")


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return "-"
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"


def _as_text(stored: Mapping[str, Any]) -> str:
    """Return the list as JSON with one line per variant."""
    lines = ["{", f' "textarena": {json.dumps(stored["textarena"])},', ' "games": {']
    for number, (name, variants) in enumerate(stored["games"].items()):
        lines.append(f"  {json.dumps(name)}: {{")
        rows = [f"   {json.dumps(key)}: {json.dumps(each)}" for key, each in variants.items()]
        lines.append(",\n".join(rows))
        lines.append("  }" + ("," if number + 1 < len(stored["games"]) else ""))
    return "\n".join([*lines, " }", "}", ""])


def _known() -> tuple[str, list[str]]:
    """Return TextArena's version and its games; in a process of its own, because it is untyped."""
    done = _child(["--names"], hash_seed=0)
    answer = json.loads(done.stdout.splitlines()[-1])
    return answer["version"], answer["names"]


def _tried(name: str) -> Results:
    """Return the result of each variant, from two processes that must agree."""
    first, second = (_results(name, hash_seed) for hash_seed in (1, 2))
    results = {}
    for variant, result in first.items():
        other = second.get(variant, {})
        digest, again = result.pop("digest", None), other.pop("digest", None)
        results[variant] = result
        if "reason" not in result and "reason" in other:
            results[variant] = other
        elif "reason" not in result and digest != again:
            results[variant] = {"reason": "an episode differs in another process"}
    return results


def _results(name: str, hash_seed: int) -> Results:
    try:
        done = _child(["--try", name], hash_seed=hash_seed)
    except subprocess.TimeoutExpired:
        return {"": {"reason": f"takes more than {GAME_SECONDS} s"}}
    if done.returncode:
        return {"": {"reason": f"ends the process with {done.returncode}"}}
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _child(words: Sequence[str], *, hash_seed: int) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "benchmarks.textarena.trial", *words]
    environment = {**os.environ, "PYTHONHASHSEED": str(hash_seed)}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=GAME_SECONDS,
        env=environment,
        check=words[0] == "--names",
    )


if __name__ == "__main__":
    main()
