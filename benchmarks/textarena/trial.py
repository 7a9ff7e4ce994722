"""Trial of one game of TextArena, in a process of its own; see `benchmarks.textarena.games`.

    python -m benchmarks.textarena.trial --try Nim-v0

Prints a JSON line with the result of each variant: the numbers of players, the range of rewards and
a digest of what was played, or the reason why it cannot be opened.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import random
import re
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import mlrl_envs
from mlrl_envs.interop import textarena_position
from mlrl_envs.interop.textarena import make_env
from mlrl_envs.interop.textarena_games import ArenaGame, ArenaVariant, split_id
from mlrl_envs.interop.textarena_position import (
    ArenaPosition,
    ArenaStart,
    files_in_order,
    position_of,
)

MAX_PLAYERS = 15
EPISODES = 2
TURNS = 40
CONTRACT_TURNS = 6
PROBES = 12
START_SECONDS = 5
PLAY_SECONDS = 60
MAX_FAILED = 0.9

# Rewards beyond -1 to 1, read from the source of the games.
REWARDS = {"Klondike-v0": (-1, 52), "Set-v0": (-1, 20), "ScorableGames-v0": (-1, 1000)}
# What errors mean, by what their text contains.
MEANINGS = {
    "Resource": "needs word lists of nltk, which are downloaded",
    "OPENROUTER": "asks a model over the network",
    "api_key": "asks a model over the network",
    "no network": "connects to a network",
}
MOVES = """
0; 1; 2; 3; 4; 5; a1; b2; c3; a2; a3; e2e4; d2d4; pass; up; down; left; right; draw; check; call;
bet; fold; 0 0; 0 1; 1 1; 2 2; 1 2; 0 2; 1 2 3; A1; B2; yes; accept; deny; cooperate; defect; heads;
tails; rock; paper; scissors; stag; hare; roll; hold; done; flag; crane
"""
WORDS = tuple(word.strip() for word in MOVES.split(";"))


def main() -> None:
    """Print the names of all games, or the results of one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--names", action="store_true")
    parser.add_argument("--try", dest="name")
    arguments = parser.parse_args()
    _block_network()
    if os.environ.get("PYTHONHASHSEED") == "2":
        _reverse_files()
    # The list is an output of this script; the loader must not ask it for a version.
    vars(textarena_position)["textarena_version"] = lambda: _textarena().__version__
    ids = [each for each in _registered() if not each.endswith("-raw")]
    if arguments.names:
        names = dict.fromkeys(split_id(each)[0] for each in ids)
        print(json.dumps({"version": _textarena().__version__, "names": list(names)}))
        return
    variants = [split_id(each)[1] for each in ids if split_id(each)[0] == arguments.name]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results = {variant: _result(arguments.name, variant) for variant in variants}
    print(json.dumps(results))


def _textarena() -> Any:  # noqa: ANN401  an untyped module
    import textarena

    return textarena


def _registered() -> list[str]:
    _textarena()
    from textarena.envs.registration import ENV_REGISTRY

    return list(ENV_REGISTRY)


def _result(name: str, variant: str) -> dict[str, Any]:
    textarena_id = f"{name}-{variant}".removesuffix("-")
    try:
        players = _players(textarena_id)
        rewards = REWARDS.get(name, (-1, 1))
        game = ArenaGame(name, {variant: ArenaVariant(tuple(players), rewards)})
        with _limit(PLAY_SECONDS, "the contract"):
            mlrl_envs.check_env(
                lambda: make_env(game, variant=variant, max_turns=CONTRACT_TURNS, num_tasks=20)
            )
        digest, shares = hashlib.sha256(), []
        with _limit(PLAY_SECONDS, "probing episodes"):
            for count in sorted({players[0], players[-1]}):
                starts = [ArenaStart(textarena_id, count, seed) for seed in range(EPISODES)]
                shares += [_probe(start, rewards, digest) for start in starts]
    except (Exception, _RefusedError) as error:  # noqa: BLE001  games fail in many ways
        return {"reason": _reason(error)}
    fails = round(sum(shares) / len(shares), 2)
    found = {"players": players, "rewards": rewards, "digest": digest.hexdigest()}
    return {**found, "fails": fails} if fails else found


class _RefusedError(BaseException):
    """A game is not opened; the message is the reason. No `except Exception` of a game stops it."""


def _players(textarena_id: str) -> list[int]:
    """Return the numbers of players that a game starts with."""
    found, errors = [], []
    for count in range(1, MAX_PLAYERS + 1):
        try:
            with _limit(START_SECONDS, "a start"):
                position = position_of(ArenaStart(textarena_id, count, 0), ())
            # Some games ignore the number and play with one of their own.
            if position.game.state.num_players == count and not position.done:
                found.append(count)
        except Exception as error:
            if _meaning(error):
                raise
            errors.append(error)
    if not found:
        raise next((each for each in errors if not isinstance(each, AssertionError)), errors[0])
    return found


def _probe(start: ArenaStart, rewards: Sequence[float], digest: "hashlib._Hash") -> float:
    """Play an episode by trying answers on copies; compare it with TextArena's own loop.

    Returns:
        The share of answers on which the game's code failed.
    """
    rng = random.Random(start.seed)  # noqa: S311  no secret
    answers: list[str] = []
    position, tried, failed = position_of(start, ()), 0, 0
    texts = [position.prompt]
    while not position.done and len(answers) < TURNS:
        for probe in _probes(position.prompt, rng):
            after = position_of(start, [*answers, probe])
            tried += 1
            failed += "The game failed" in after.reason
            if not after.invalid:
                break
        if failed / tried > MAX_FAILED and tried >= PROBES:
            kind = re.findall(r"\((\w+)\)", after.reason)[-1]
            raise _RefusedError(f"its code fails on nearly all answers ({kind})")
        answers, position = [*answers, probe], after
        texts.append(position.prompt)
        digest.update(_shown(position, start.players).encode("utf-8", "replace"))
    if "The game failed" not in position.reason and _plain(start, answers) != texts:
        raise _RefusedError("a copy plays on differently from the original")
    low, high = rewards
    outside = [each for each in position.rewards.values() if not low <= each <= high]
    if outside:
        raise _RefusedError(f"a reward of {outside[0]:g} is outside {low} to {high}")
    return failed / max(tried, 1)


def _plain(start: ArenaStart, answers: Sequence[str]) -> list[str]:
    """Play an episode with TextArena's own loop, without copies; return what players read."""
    states = random.getstate(), np.random.get_state()  # noqa: NPY002  what TextArena draws from
    random.seed(start.seed)
    np.random.seed(start.seed)  # noqa: NPY002
    try:
        with files_in_order():
            game = _textarena().make(start.textarena_id)
            game.reset(num_players=start.players, seed=start.seed)
        texts = [game.get_observation()[1].strip()]
        for answer in answers:
            over, _ = game.step(action=answer)
            texts.append("" if over or game.state.done else game.get_observation()[1].strip())
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
    return texts


def _probes(prompt: str, rng: random.Random) -> list[str]:
    """Return some answers: what the prompt shows in brackets and quotes, and common moves."""
    shown = re.findall(r"\[([^\[\]\n]{1,30})\]", prompt[-4000:])
    shown += re.findall(r"'([^'\n]{1,20})'", prompt[-2000:])
    ours, common = sorted(set(shown)), list(WORDS)
    rng.shuffle(ours)
    rng.shuffle(common)
    return [f"[{each}]" for each in [*ours[: PROBES // 2], *common][:PROBES]]


def _shown(position: ArenaPosition, players: int) -> str:
    texts = [position.text(player) for player in range(players)]
    return json.dumps([texts, position.asked, sorted(position.rewards.items()), position.reason])


def _reason(error: BaseException) -> str:
    if isinstance(error, _RefusedError):
        return str(error)
    line = " ".join(str(error).split())[:120]
    failed = f"fails with {type(error).__name__}: {line}" if line else f"fails: {error!r}"
    return _meaning(error) or failed


def _meaning(error: BaseException) -> str:
    """Return what an error means that has nothing to do with the number of players."""
    if isinstance(error, SyntaxError):
        return "its code does not compile on Python {}.{}".format(*sys.version_info[:2])
    if isinstance(error, FileNotFoundError):
        return "a file of it is missing in TextArena"
    text = f"{type(error).__name__} {error}"
    missing = re.search(r"No module named '([\w.]+)'", text)
    if missing and missing[1].startswith("textarena"):
        return "its code is missing in TextArena"
    if missing:
        return f"needs the package {missing[1]}"
    return next((meaning for part, meaning in MEANINGS.items() if part in text), "")


@contextlib.contextmanager
def _limit(seconds: int, what: str) -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        raise _RefusedError(f"takes more than {seconds} s for {what}")

    # Seconds of the processor, so that a busy machine refuses no game.
    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _block_network() -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network in this trial")

    setattr(socket.socket, "connect", refuse)  # noqa: B010  another signature
    setattr(socket, "getaddrinfo", refuse)  # noqa: B010


def _reverse_files() -> None:
    """List files in another order, as another file system may."""
    listed = os.listdir
    setattr(os, "listdir", lambda path=".": sorted(listed(path))[::-1])  # noqa: B010


if __name__ == "__main__":
    main()
