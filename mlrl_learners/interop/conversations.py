"""From a line of a file of episodes to conversations, one an agent an episode.

A line of a run holds a whole tree; each of its lines of play, from the root to a leaf, is an
episode, so that the first turns of a tree are in several. JSON values in, JSON values out.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mlrl_learners.figures.bootstrap import mean
from mlrl_learners.types import AgentID

__all__ = ["conversations", "count_unfinished", "episodes_of"]

Json = Mapping[str, Any]
IDS = ("prompt_ids", "token_ids", "logprobs")


def episodes_of(record: Json, name: str) -> Iterator[dict[str, Any]]:
    """Yield the episodes of a line as `episode_record` has them, with `env_id` and `episode`.

    A joint action that a chain did not follow though the episode went on ends none.

    Args:
        record: A line of `mlrl collect`, `mlrl evaluate --episodes` or a run's episodes.
        name: What tells the line from others; a tree's lines of play are numbered after it.

    Raises:
        LookupError: If it is no such line.
    """
    if "node" not in record:
        env_id = record.get("env_id") or record.get("source", {}).get("env_id", "")
        yield {**record, "env_id": env_id, "episode": name}
        return
    whole = (line for line in _lines_of_play(record["node"]) if _is_over(line[-1][1]))
    for number, line in enumerate(whole):
        turns = [_turn(node, step) for node, step in line]
        returns = {a: sum(turn["rewards"].get(a, 0.0) for turn in turns) for a in record["agents"]}
        yield {
            **{key: record[key] for key in ("env_id", "task_id", "seed")},
            "episode": f"{name}/{number}",
            "return": mean(list(returns.values())),
            "returns": returns,
            "solved": line[-1][1]["solved"],
            "turns": turns,
        }


def count_unfinished(record: Json) -> int:
    """Return how many lines of play of a line a chain did not follow to their end.

    Raises:
        LookupError: If it is no line of a run, a collection or an evaluation.
    """
    if "node" not in record:
        return 0
    return sum(not _is_over(line[-1][1]) for line in _lines_of_play(record["node"]))


def conversations(episode: Json) -> list[dict[str, Any]]:
    """Return what each agent that acted read and wrote, as messages of a user and an assistant.

    Every message of a user is all that the agent read before its answer, however often it acted
    before. Next to the messages stand `reward`, the agent's return; `team_reward`, the team's;
    and `turns`, what an answer earned and for what, and where the file has them `prompt_ids`,
    `token_ids` and `logprobs` as sampled, never tokenised again.

    Raises:
        LookupError: If it is no episode.
    """
    about = {key: episode[key] for key in ("episode", "env_id", "task_id", "seed", "solved")}
    return [
        {
            **about,
            "agent": agent,
            "reward": reward,
            "team_reward": episode["return"],
            "messages": [
                {"role": role, "content": turn[kind][agent]}
                for turn in episode["turns"]
                if agent in turn["actions"]
                for role, kind in (("user", "observations"), ("assistant", "actions"))
            ],
            "turns": [_facts(turn, agent) for turn in episode["turns"] if agent in turn["actions"]],
        }
        for agent, reward in episode["returns"].items()
        if any(agent in turn["actions"] for turn in episode["turns"])
    ]


def _facts(turn: Json, agent: AgentID) -> dict[str, Any]:
    return {
        "reward": turn["rewards"].get(agent, 0.0),
        "components": turn["components"].get(agent, {}),
        "finish_reason": turn.get("finish_reasons", {}).get(agent, "stop"),
        **{name: turn[name][agent] for name in IDS if name in turn},
    }


def _is_over(step: Json) -> bool:
    return bool(step["terminated"] or step["truncated"])


def _lines_of_play(node: Json) -> Iterator[list[tuple[Json, Json]]]:
    for step in node["steps"]:
        if step["child"] is None:
            yield [(node, step)]
        else:
            yield from ([(node, step), *rest] for rest in _lines_of_play(step["child"]))


def _turn(node: Json, step: Json) -> dict[str, Any]:
    """Return a joint action as a turn of an episode."""
    samples: Mapping[AgentID, int] = step["samples"]
    played = {agent: node["completions"][agent][number] for agent, number in samples.items()}
    turn = {
        "observations": node["observations"],
        "actions": {agent: completion["text"] for agent, completion in played.items()},
        "finish_reasons": {agent: each["finish_reason"] for agent, each in played.items()},
        "rewards": step["rewards"],
        "components": step["components"],
    }
    return turn | _ids(node, list(played.items()))


def _ids(node: Json, played: Sequence[tuple[AgentID, Json]]) -> dict[str, Any]:
    if "prompt_ids" not in node:
        return {}
    own = {name: {agent: each[name] for agent, each in played} for name in IDS[1:]}
    return {"prompt_ids": node["prompt_ids"], **own}
