"""Only `mlrl_learners.runs` names the keys of its records and the files of a run directory."""

import ast
import json
from pathlib import Path

import pytest

from benchmarks.structure import ROOT, Module, read_modules
from mlrl_learners.runs import keys
from mlrl_learners.runs.evaluations import EvaluationResult
from mlrl_learners.runs.files import RUN_FILES
from mlrl_learners.runs.labels import attempt_record
from mlrl_learners.runs.records import episode_record, failure_record, rollout_record
from mlrl_learners.types import (
    Completion,
    Episode,
    EpisodeTurn,
    FailedEpisode,
    JointStep,
    Node,
    Rollout,
)

OWNER = "mlrl_learners.runs"
OWNED = keys.RECORD_KEYS | RUN_FILES
RESULT_FILES = "a key of result files, whose format mlrl_learners.bench.results owns"

# Module -> keys that mean something else there, and what they mean.
OTHER_MEANINGS = {
    "mlrl_learners.bench.exact_policies": ({"prompt_ids"}, "a method of actors with models"),
    "mlrl_learners.bench.results": (
        {"agent_returns", "prompt_tokens", "returns", "solved_rate", "turns"},
        RESULT_FILES,
    ),
    "mlrl_learners.bench.compare": ({"returns"}, RESULT_FILES),
    "mlrl_learners.bench.leaderboard.rows": (
        {"prompt_tokens", "returns", "solved_rate", "turns"},
        RESULT_FILES,
    ),
    "mlrl_learners.bench.plan": ({"suite_seed"}, "part of what the key of an episode hashes"),
    "mlrl_learners.cli.bench": ({"solved_rate"}, RESULT_FILES),
    "mlrl_learners.cli.rescore": ({"turns"}, RESULT_FILES),
    "mlrl_learners.evaluation.collect": ({"token_ids"}, "an argument of a collection"),
    "mlrl_learners.interop.conversations": (
        {"finish_reason", "turns"},
        "a key of exported conversations, whose format that module owns",
    ),
    "mlrl_learners.metric_modules.team_return": (
        {"mean_return", "prompt_tokens", "solved_rate"},
        "a result of the metric",
    ),
    "mlrl_learners.monitor.index": ({"turns"}, "a column of the index"),
    "mlrl_learners.monitor.pages.episode": ({"turns"}, "a class of the style sheet"),
    "mlrl_learners.monitor.pages.episodes": ({"turns"}, "a column of the table"),
    "mlrl_learners.report.bench_tables": ({"solved_rate"}, RESULT_FILES),
    "mlrl_learners.serving.replies": (
        {"finish_reason", "logprobs", "prompt_tokens", "token_ids"},
        "a field of OpenAI's protocol",
    ),
    "mlrl_learners.serving.requests": ({"logprobs"}, "a field of OpenAI's protocol"),
    "mlrl_learners.algorithms.answer_advantages": ({"node"}, "a value of an option"),
    "mlrl_learners.algorithms.magrpo_config": ({"node"}, "a value of an option"),
    "mlrl_learners.algorithms.policy_gradient_options": ({"node"}, "a value of an option"),
    "mlrl_learners.functional.grouping": ({"node"}, "a value of an option"),
    "mlrl_learners.algorithms.sft": ({"actions", "observations"}, "a value of an option"),
    "mlrl_learners.testing.toy_env": ({"terminated"}, "how an agent leaves an environment"),
    "mlrl_learners.testing.toy_training": ({"mean_return"}, "a column of a table"),
}


def named_keys(module: Module) -> set[str]:
    """Return the owned names that are string literals of a module."""
    literals = (node.value for node in ast.walk(module.tree) if isinstance(node, ast.Constant))
    return {value for value in literals if isinstance(value, str) and value in OWNED}


def breaches(root: Path) -> list[str]:
    """Return every module below `root` that names a key or a file of a run directory."""
    return [
        f"{module.name} names {name!r}: use {OWNER}"
        for module in read_modules(root, ["mlrl_learners"]).values()
        if not module.name.startswith(OWNER)
        for name in sorted(named_keys(module) - OTHER_MEANINGS.get(module.name, (set(), ""))[0])
    ]


def test_no_module_outside_runs_names_a_key_or_a_file():
    assert breaches(ROOT) == []


@pytest.fixture(scope="module")
def modules():
    return read_modules(ROOT, ["mlrl_learners"])


@pytest.mark.parametrize("name", OTHER_MEANINGS)
def test_every_exception_is_needed(modules, name):
    assert OTHER_MEANINGS[name][0] <= named_keys(modules[name])


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ('turns = record["turns"]', "turns"),
        ('turns = record.get("turns", ())', "turns"),
        ('is_tree = "node" in record', "node"),
        ('record = {"finish_reasons": {}}', "finish_reasons"),
        ('path = run_dir / "episodes.jsonl"', "episodes.jsonl"),
        ('CONFIG = "config.yaml"', "config.yaml"),
    ],
)
def test_a_violating_module_is_found(tmp_path, source, name):
    (tmp_path / "mlrl_learners").mkdir()
    (tmp_path / "mlrl_learners" / "reader.py").write_text(source + "\n")
    assert breaches(tmp_path) == [f"mlrl_learners.reader names {name!r}: use {OWNER}"]


@pytest.mark.parametrize(
    "source", ['"""Reads the turns of episodes.jsonl."""', "turns = episode.turns", 'x = "turn s"']
)
def test_prose_and_attributes_are_let_through(tmp_path, source):
    (tmp_path / "mlrl_learners").mkdir()
    (tmp_path / "mlrl_learners" / "reader.py").write_text(source + "\n")
    assert breaches(tmp_path) == []


ANSWER = Completion("hi", prompt_ids=(1,), token_ids=(2,), logprobs=(-0.5,))
TURN = EpisodeTurn({"a": "say hi"}, {"a": ANSWER}, {"a": 0.5}, {"a": {"tests": 0.5}}, {"a": {}})
EPISODE = Episode("x/1", 7, (TURN,), False, {"a": 0.5})
STEP = JointStep({"a": 0}, {"a": 0.5}, {"a": {"tests": 0.5}}, {"a": {}}, True, False)
ROLLOUT = Rollout("e", "x/1", ("a",), Node(0, {"a": "say hi"}, {"a": (ANSWER,)}, (STEP,)))
FAILURE = FailedEpisode("e", "x/1", 7, "InfraError", "no worker")
FIGURES = {
    **dict.fromkeys(("env_id", "split", "seed", "samples", "explore", "mean_return"), 0),
    **dict.fromkeys(("solved_rate", "tokens", "prompt_tokens", "seconds"), 0),
    **dict.fromkeys(("interval", "solved_interval"), (0, 1)),
    **{key: {} for key in ("agent_returns", "components", "component_intervals", "pass_at_k")},
    **{key: {} for key in ("task_returns", "agent_tokens")},
}
RESULT = EvaluationResult(**FIGURES, episodes=(EPISODE,), failures=())


@pytest.mark.parametrize("token_ids", [False, True])
def test_the_table_holds_the_keys_of_every_record_in_their_order(token_ids):
    ids = keys.TOKEN_IDS if token_ids else ()
    episode = json.loads(json.dumps(episode_record(EPISODE, token_ids=token_ids)))
    rollout = json.loads(json.dumps(rollout_record(ROLLOUT, token_ids=token_ids)))
    (turn,), node = episode["turns"], rollout["node"]
    (step,), (answer,) = node["steps"], node["completions"]["a"]
    assert tuple(episode) == keys.EPISODE
    assert tuple(turn) == (*keys.TURN, *ids)
    assert tuple(rollout) == keys.ROLLOUT
    assert tuple(key for key in node if key != "prompt_ids") == keys.NODE
    assert ("prompt_ids" in node) is token_ids
    assert tuple(answer) == (*keys.COMPLETION, *ids[1:])
    assert tuple(step) == keys.STEP
    assert tuple(RESULT.as_dict()) == keys.EVALUATION
    attempt = attempt_record(FAILURE, 2)
    assert {*failure_record(FAILURE), *attempt} == set(keys.FAILURE)
