"""Scripted play of a task: the same games as examples for the team and for the one agent."""

import json
import random
from pathlib import Path
from typing import Any

import mlrl_envs
from benchmarks.teams.one_agent import AGENT, answer_of, observation_of
from benchmarks.teams.scripts import scripted_actions
from benchmarks.teams.tasks import TeamTask

__all__ = ["ONE_AGENT", "TEAM", "write_play"]

TEAM, ONE_AGENT = "play-team.jsonl", "play-one-agent.jsonl"


def write_play(task: TeamTask, folder: Path) -> None:
    """Write the games of a task into two files, unless they are complete."""
    if (folder / ONE_AGENT).exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {TEAM: [], ONE_AGENT: []}
    envs = [
        mlrl_envs.make(task.env_id, split="train", **{**task.env, **further})
        for further in task.imitated
    ]
    draw = random.Random(0)  # noqa: S311 - reproducible on purpose
    for number in range(task.games):
        env = envs[number % len(envs)]
        for name, turns in _game(env, task, number, draw).items():
            lines[name].append(json.dumps({"return": 0.0, "turns": turns}))
    for name, written in lines.items():  # the file that is looked for comes last
        partial = (folder / name).with_suffix(".partial")
        partial.write_text("\n".join(written) + "\n", encoding="utf-8")
        partial.rename(folder / name)


def _game(env: Any, task: TeamTask, number: int, draw: random.Random) -> dict[str, list[Any]]:  # noqa: ANN401
    """Play one game; return its turns as the team and as the one agent see them, by file."""
    index = number // len(task.imitated) % env.num_tasks
    observations, _ = env.reset(seed=number, options={"task_index": index})
    team: list[Any] = []
    one: list[Any] = []
    while env.agents:
        script, seeds = draw.choice(task.scripts), [draw.randrange(2**31) for _ in env.acting]
        actions = scripted_actions(env, script, seeds)
        shown = {agent: observations[agent] for agent in actions}
        whole = observation_of(env.family, env.task, env.turns)
        team.append(_turn(shown, actions))
        one.append(_turn({AGENT: whole}, {AGENT: answer_of(list(actions.values()))}))
        observations, *_ = env.step(actions)
    return {TEAM: team, ONE_AGENT: one}


def _turn(observations: dict[str, str], actions: dict[str, str]) -> dict[str, dict[str, str]]:
    ends = dict.fromkeys(actions, "stop")
    return {"observations": observations, "actions": actions, "finish_reasons": ends}
