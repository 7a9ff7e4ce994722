"""Audit of a game: attacks play a seat, or all seats, beside the best script.

Task number i attacks seat i modulo the number of agents, so that every seat gets its share of the
tasks. The best script plays the same task for comparison; the gain of an attack is the difference
of the two returns of that seat, in units of the payoff. In cooperative games attacks also play all
seats at the same time, and the gain is that of the mean over agents.

Not covered: best responses, which `mlrl_envs.games.measures` computes exactly in small games.
"""

import math
import random
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from mlrl_envs.auditing.game_report import GameAuditReport, SeatResult
from mlrl_envs.auditing.mutations import mutate
from mlrl_envs.auditing.playing import Place, check_names, draw_places, start
from mlrl_envs.auditing.scene import Scene
from mlrl_envs.auditing.search import CLIMBED
from mlrl_envs.auditing.seat_attacks import SeatAttack, Sight, choose_attacks, scene_of
from mlrl_envs.auditing.seats import is_game, play_seats
from mlrl_envs.errors import InvalidArgumentError
from mlrl_envs.types import AgentID, TextEnv

__all__ = ["audit_game"]

_POOL = 6
_MAX_CHARS = 2000


def audit_game(
    env: TextEnv,
    *,
    attacks: Sequence[str] | None = None,
    budget: int = 200,
    tasks: int = 8,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> GameAuditReport:
    """Play texts that do not know a game against its best script, and compare with that script.

    Every attack is tried once on every task; then a search changes fixed texts. It chooses one on
    the first half of the tasks, and reports what that text earns on the second half.

    Args:
        env: An environment whose agents take turns or that lists legal actions, with reference
            actions; it is reset.
        attacks: Names of attacks; None for all that apply.
        budget: Maximum number of tries per task, at least one for each attack.
        tasks: Maximum number of tasks, at least 2 and as many as the game has agents.
        seed: Seed of the tasks and the attacks.
        progress: Called with the number of tries; `budget` is reported per task.

    Returns:
        The report; `print(report.table())` shows it.

    Raises:
        InvalidArgumentError: If an argument is outside its range, a return is not finite, or the
            environment has no reference actions or lacks `acting`.
        UnknownNameError: If there is no attack of that name.
        InfraError: If the infrastructure fails.
    """
    if not is_game(env):
        raise InvalidArgumentError("audit_game needs a game with reference_actions; use audit")
    check_names(env, ("possible_agents", "metadata", "acting"))
    return _Audit(env, budget, tasks, seed, progress).run(attacks)


class _Audit:
    """State of an audit: the tasks, what honest play earns on them, and the tries so far."""

    def __init__(
        self,
        env: Any,  # noqa: ANN401  an environment of `is_game`
        budget: int,
        tasks: int,
        seed: int,
        progress: Callable[[int], None] | None,
    ) -> None:
        self.env, self.budget, self.seed, self.progress = env, budget, seed, progress
        self.agents: list[AgentID] = list(env.possible_agents)
        least = max(2, len(self.agents))
        self.places = draw_places(env, tasks, seed)
        if len(self.places) < least:
            raise InvalidArgumentError(
                f"tasks must be at least {least}, one for each seat, got {len(self.places)}"
            )
        game = getattr(env.family, "game", None) if hasattr(env, "family") else None
        self.cooperative = bool(getattr(game, "cooperative", False))
        self.names = [start(env, place)[0] for place in self.places]
        self.honest = [self._returns(place, (), None, "") for place in self.places]
        self.left = budget * len(self.places)
        self.texts: Counter[str] = Counter()
        self.sight, self.reference = self._first_sight()

    def run(self, names: Sequence[str] | None) -> GameAuditReport:
        """Try the attacks and the search."""
        attacks = choose_attacks(names, self.sight, self.reference)
        modes = ("one", "all") if self.cooperative else ("one",)
        least = len(attacks) * len(modes)
        if self.budget < least:
            raise InvalidArgumentError(
                f"budget must be at least {least}, one try for each attack, got {self.budget}"
            )
        numbers = range(len(self.places))
        results = [self._result(each, mode, numbers) for each in attacks for mode in modes]
        count = self.budget - least
        if count and self.texts:
            text = self._search(count, modes[-1], scene_of(self.sight))
            found = SeatAttack(CLIMBED, lambda *_: text, names_move=True)
            results.append(self._result(found, modes[-1], numbers[len(numbers) // 2 :]))
        self._report(self.left)
        return GameAuditReport(
            env_id=str(self.env.metadata.get("name", type(self.env).__name__)),
            cooperative=self.cooperative,
            script=self.env.scripts[-1] if hasattr(self.env, "scripts") else "reference",
            seed=self.seed,
            budget=self.budget,
            tasks=self.names,
            honest=[found[self._seat(number)] for number, found in enumerate(self.honest)],
            results=sorted(results, key=lambda each: each.gain, reverse=True),
        )

    def _first_sight(self) -> tuple[Sight, str]:
        """Return what the first agent sees at the start, and the action of the best script."""
        _, observations = start(self.env, self.places[0])
        agent = self.env.acting[0]
        legal = self.env.legal_actions(agent) if hasattr(self.env, "legal_actions") else ()
        reference = self.env.reference_actions()[agent]
        return Sight(agent, observations[agent], tuple(legal), ()), reference

    def _seat(self, number: int) -> AgentID:
        return self.agents[number % len(self.agents)]

    def _returns(
        self, place: Place, seats: Sequence[AgentID], attack: SeatAttack | None, draws: str
    ) -> dict[AgentID, float]:
        writers = {} if attack is None else dict.fromkeys(seats, attack.write)
        on_answer = self._keep if attack is not None and attack.name != CLIMBED else None
        rng = random.Random(f"{self.seed}/{place.options}/{draws}")  # noqa: S311  must be deterministic
        found = play_seats(self.env, place, writers, rng, on_answer)
        if not all(map(math.isfinite, found.values())):
            raise InvalidArgumentError("an audit needs finite rewards; found NaN or infinity")
        return found

    def _keep(self, sight: Sight, text: str) -> None:
        """Remember texts from which the search begins: legal answers, and those of attacks."""
        self.texts.update(sight.legal)
        self.texts.update([text[:_MAX_CHARS]])

    def _gains(
        self, attack: SeatAttack, mode: str, numbers: Sequence[int]
    ) -> list[tuple[float, float]]:
        """Return the return of an attack and its gain on each task."""
        found = []
        for number in numbers:
            seats = self.agents if mode == "all" else [self._seat(number)]
            returns = self._returns(self.places[number], seats, attack, f"{attack.name}/{mode}")
            own = statistics.fmean(returns[agent] for agent in seats)
            honest = statistics.fmean(self.honest[number][agent] for agent in seats)
            found.append((own, own - honest))
        self._report(len(found))
        return found

    def _result(self, attack: SeatAttack, mode: str, numbers: Sequence[int]) -> SeatResult:
        found = self._gains(attack, mode, numbers)
        gains = [gain for _, gain in found]
        of_seat: defaultdict[AgentID, list[float]] = defaultdict(list)
        for number, gain in zip(numbers, gains, strict=True):
            of_seat[self._seat(number) if mode == "one" else ""].append(gain)
        wrote = attack.write(self.sight, random.Random(self.seed))  # noqa: S311
        return SeatResult(
            name=attack.name,
            seats=mode,
            names_move=attack.names_move,
            tasks=len(found),
            mean=statistics.fmean(own for own, _ in found),
            gain=statistics.fmean(gains),
            error=_standard_error(list(of_seat.values())),
            by_seat={agent: statistics.fmean(own) for agent, own in of_seat.items() if agent},
            example=wrote,
        )

    def _search(self, count: int, mode: str, scene: Scene) -> str:
        """Return the best of `count` fixed texts on the first half of the tasks."""
        rng = random.Random(f"{self.seed}/{CLIMBED}")  # noqa: S311  must be deterministic
        half = range(max(1, len(self.places) // 2))
        agent = scene.agents[0]
        known = [text for text, _ in self.texts.most_common(max(1, count // 2))]
        scores: dict[str, float] = {}
        waiting = list(known)
        for _ in range(count):
            if not waiting:
                best = sorted(scores, key=scores.__getitem__, reverse=True)[:_POOL]
                parent, mate = {agent: rng.choice(best)}, {agent: rng.choice(known)}
                waiting.append(mutate(parent, mate, scene, rng)[agent][:_MAX_CHARS])
            text = waiting.pop(0)
            if text not in scores:
                attack = SeatAttack(CLIMBED, lambda *_, text=text: text)
                found = self._gains(attack, mode, half)
                scores[text] = statistics.fmean(gain for _, gain in found)
        return max(scores, key=scores.__getitem__)

    def _report(self, tries: int) -> None:
        tries = min(tries, self.left)
        self.left -= tries
        if self.progress is not None and tries:
            self.progress(tries)


def _standard_error(groups: Sequence[Sequence[float]]) -> float:
    """Return the standard error of the mean of all values, from their variance within groups.

    Seats differ in what can be lost in them. Without two values in a group it is that of all.
    """
    values = [value for group in groups for value in group]
    freedom = len(values) - len(groups)
    if freedom < 1:
        groups, freedom = [values], max(1, len(values) - 1)
    squares = math.fsum((x - statistics.fmean(group)) ** 2 for group in groups for x in group)
    return math.sqrt(squares / freedom / len(values))
