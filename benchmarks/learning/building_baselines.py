"""Returns and IoU of scripted builders, and of an untrained model, on the published tasks.

    python -m benchmarks.learning.building_baselines [--model smollm2-135m-instruct] [--publish]

All ten strings and ten houses, one turn, both rewards. Scripts need no model; `random` is a mean
over `--draws` draws of each task. Without `--model` the stored row of the model stays. `--publish`
writes `benchmarks/learning/building_baselines.json` and the table of `docs/building.md`. The tasks
are read from `MLRL_DATA_DIR`. Not covered: training, and the four turns of the published figures.
"""

import argparse
import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mlrl_envs
import mlrl_learners
from benchmarks.perf.table import between
from benchmarks.shared.curves import ROOT
from mlrl_learners.figures.means import mean

__all__ = ["BUILDERS", "main", "measure", "table"]

RESULTS = Path(__file__).with_name("building_baselines.json")
PAGE = ROOT / "docs" / "building.md"
BEGIN, END = "<!-- building baselines: begin -->", "<!-- building baselines: end -->"
ENVS = ("mlrl/strbuild-v0", "mlrl/housebuild-v0")
REWARDS = ("paper", "grounded")
MODEL_TOKENS = 192
FIGURES = ("iou", *REWARDS)

Commands = Mapping[str, Sequence[str]]
"""The commands of the reference, by builder."""

Draw = random.Random


def _alone(reference: Commands, _: Draw) -> list[Sequence[str]]:
    first, second = reference.values()
    kinds = list(dict.fromkeys(_block(line) for line in first if " " in line))
    is_string = any(line.startswith("/setblock") for line in first)
    ours = [_with_block(line, kinds[n % len(kinds)]) for n, line in enumerate(second)]
    return [[*first, *(ours if is_string else second)], []]


def _both(reference: Commands, draw: Draw) -> list[Sequence[str]]:
    one, _ = _alone(reference, draw)
    other, _ = _alone(dict(reversed(list(reference.items()))), draw)
    return [one, other]


def _random(reference: Commands, draw: Draw) -> list[Sequence[str]]:
    """Return as many commands as the reference has, with cells and own blocks drawn anew."""
    every = [line.split() for lines in reference.values() for line in lines if " " in line]
    sizes = [max(int(words[at]) for words in every) + 1 for at in (1, 2, 3)]
    return [
        [_drawn(line, sizes, [_block(each) for each in lines if " " in each], draw)
         for line in lines if " " in line]
        for lines in reference.values()
    ]  # fmt: skip


BUILDERS: Mapping[str, tuple[str, Callable[[Commands, Draw], Iterable[Sequence[str]]]]] = {
    "reference": ("the reference, half each", lambda given, _: given.values()),
    "part": ("`builder_1` does its half alone", lambda given, _: [next(iter(given.values())), []]),
    "alone": ("`builder_1` does everything", _alone),
    "both": ("both do everything, their own half first", _both),
    "random": ("random commands, as many as in the reference", _random),
    "empty": ("no commands", lambda *_: [[], []]),
}


def measure(env_id: str, builder: str, *, draws: int = 1) -> dict[str, float]:
    """Return the mean IoU and the mean return by reward of a script on all published tasks.

    Args:
        env_id: One of both environments.
        builder: A name of `BUILDERS`.
        draws: Episodes of each task.
    """
    found: dict[str, list[float]] = {name: [] for name in FIGURES}
    for reward in REWARDS:
        env: Any = mlrl_envs.make(env_id, split="all", reward=reward, max_turns=1)
        for index in range(env.num_tasks):
            for number in range(draws):
                env.reset(seed=number, options={"task_index": index})
                reference = {a: t.splitlines() for a, t in env.reference_actions().items()}
                lines = BUILDERS[builder][1](reference, random.Random(number))  # noqa: S311
                texts = map("\n".join, lines)
                _, rewards, _, _, infos = env.step(dict(zip(reference, texts, strict=True)))
                agent = next(iter(reference))
                found[reward].append(rewards[agent])
                if reward == REWARDS[0]:
                    found["iou"].append(infos[agent]["diagnostics"]["iou"])
    return {name: round(mean(values), 4) for name, values in found.items()}


def measure_model(env_id: str, model: str, seeds: Sequence[int]) -> dict[str, float]:
    """Return the figures of `measure` of an untrained model that plays both builders."""
    found: dict[str, list[float]] = {name: [] for name in FIGURES}
    agents = mlrl_envs.make(env_id, split="sample").possible_agents
    sampling = {"max_new_tokens": MODEL_TOKENS}
    for seed in seeds:
        actor = mlrl_learners.make(
            "magrpo", agents=agents, model=model, seed=seed, sampling=sampling,
            team={"share_weights": True},
        )  # fmt: skip
        result = mlrl_learners.evaluate(
            env_id=env_id, actor=actor, split="all", seed=seed,
            env_options={"max_turns": 1, "reward": "paper"},
        )  # fmt: skip
        grounded: Any = mlrl_envs.make(env_id, split="all", reward="grounded", max_turns=1)
        for episode in result.episodes:
            (turn,) = episode.turns
            grounded.reset(seed=episode.seed, options={"task_id": episode.task_id})
            actions = {agent: answer.text for agent, answer in turn.completions.items()}
            _, rewards, _, _, infos = grounded.step(actions)
            found["grounded"].append(rewards[agents[0]])
            found["paper"].append(turn.rewards[agents[0]])
            found["iou"].append(infos[agents[0]]["diagnostics"]["iou"])
    return {name: round(mean(values), 4) for name, values in found.items()}


def table(found: Mapping[str, Mapping[str, Mapping[str, float]]], labels: Mapping[str, str]) -> str:
    """Return figures by builder and environment as a Markdown table.

    Args:
        found: Builder -> environment -> IoU and returns.
        labels: Names of the builders in the table.
    """
    lines = [
        "| | StrBuild: IoU in % | paper | grounded | HouseBuild: IoU in % | paper | grounded |",
        "|---|---|---|---|---|---|---|",
    ]
    for builder, by_env in found.items():
        cells = [
            f"{100 * by_env[env_id][name]:.1f}" if name == "iou" else f"{by_env[env_id][name]:.2f}"
            for env_id in ENVS
            for name in FIGURES
        ]
        lines.append(f"| {labels[builder]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table, and publish it if asked."""
    parser = argparse.ArgumentParser(
        prog="benchmarks.learning.building_baselines", description=__doc__
    )
    parser.add_argument("--model", help="also measure a model")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2], help="of the model")
    parser.add_argument("--draws", type=int, default=20, help="draws of random commands")
    parser.add_argument("--publish", action="store_true", help="write the results and the table")
    given = parser.parse_args(argv)
    stored = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    found: dict[str, dict[str, dict[str, float]]] = {}
    for builder in BUILDERS:
        draws = given.draws if builder == "random" else 1
        found[builder] = {env_id: measure(env_id, builder, draws=draws) for env_id in ENVS}
    work: dict[str, Any] = {"draws": given.draws, "turns": 1}
    models = dict(stored.get("models", {}))
    if given.model:
        options = {"seeds": given.seeds, "tokens": MODEL_TOKENS}
        figures = {env_id: measure_model(env_id, given.model, given.seeds) for env_id in ENVS}
        models[given.model] = {"work": options, "figures": figures}
    labels = {builder: label for builder, (label, _) in BUILDERS.items()}
    for name, each in models.items():
        seeds, tokens = len(each["work"]["seeds"]), each["work"]["tokens"]
        labels[name] = f"`{name}`, untrained, {tokens} tokens, seeds: {seeds}"
    whole = {**found, **{name: each["figures"] for name, each in models.items()}}
    print(table(whole, labels))
    if given.publish:
        text = json.dumps({"work": work, "scripts": found, "models": models}, indent=1)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        page = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(between(page, BEGIN, END, table(whole, labels)), encoding="utf-8")
    return 0


def _block(line: str) -> str:
    return line.rsplit(maxsplit=1)[-1]


def _with_block(line: str, block: str) -> str:
    return line.replace(_block(line), block) if " " in line else line


def _drawn(line: str, sizes: Sequence[int], blocks: Sequence[str], draw: Draw) -> str:
    verb, *numbers = line.split()[:-1]
    corners = [str(draw.randrange(sizes[at % 3])) for at in range(len(numbers))]
    return " ".join([verb, *corners, draw.choice(blocks)])


if __name__ == "__main__":
    raise SystemExit(main())
