"""One run trains on several environments, and names each in metrics and evaluations."""

import json
from collections import Counter

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.cli import main
from mlrl_learners.config.run import from_mapping, load_config, save_config
from mlrl_learners.errors import ConfigError, UnknownNameError
from mlrl_learners.evaluation.evaluate import evaluate
from mlrl_learners.registry import BUILT_IN
from mlrl_learners.seeding import weighted_indices
from mlrl_learners.testing import ScriptedActor
from mlrl_learners.training.loop import train

ENVS = [
    {"id": "mlrl/math-v2", "weight": 3, "options": {"split": "sample", "max_turns": 1}},
    {"id": "mlrl/kuhn-v0"},
]
AGENTS = ["solver", "verifier", "player_0", "player_1"]
FAST = ("magrpo",)
TEAMS = [
    pytest.param(spec.name, marks=() if spec.name in FAST else pytest.mark.slow)
    for spec in BUILT_IN
    if spec.max_agents != 1
]


def learner_of(name="magrpo", agents=AGENTS):
    options = {"sampling": {"max_new_tokens": 4}, "compute": {"device": "cpu"}}
    if name == "madpo":  # pairs need the futures of all answers where agents take turns
        options["group"] = {"size": 2, "branching": "tree"}
    return mlrl_learners.make(name, agents=agents, model="tiny-random", **options)


def run(run_dir, iterations, learner=None, **options):
    settings = {"env": ENVS, "tasks_per_iteration": 1, "progress": False, **options}
    return train(
        learner=learner or learner_of(), iterations=iterations, run_dir=run_dir, **settings
    )


@pytest.mark.parametrize("name", TEAMS)
def test_every_learner_trains_where_agents_are_absent(name, tmp_path):
    result = run(tmp_path, 1, learner_of(name), tasks_per_iteration=4)
    assert {"train/math/return", "train/kuhn/return"} <= result.metrics.keys()


@pytest.mark.slow
def test_tasks_follow_the_weights_and_a_resumed_run_goes_on(tmp_path):
    run(tmp_path / "whole", 8)
    run(tmp_path / "parts", 3)
    run(tmp_path / "parts", 8, resume=True)
    whole, parts = ((tmp_path / n / "episodes.jsonl").read_text() for n in ("whole", "parts"))
    assert whole == parts
    tasks = [json.loads(line)["task_id"] for line in whole.splitlines()]
    assert Counter(task.partition("/")[0] for task in tasks) == {"math": 6, "kuhn": 2}
    folders = [next((tmp_path / n / "checkpoints").glob("step_*8")) for n in ("whole", "parts")]
    weights = [sorted(folder.glob("**/*.safetensors")) for folder in folders]
    assert [file.read_bytes() for file in weights[0]] == [file.read_bytes() for file in weights[1]]


def test_weighted_groups_show_every_task_once_before_any_again():
    groups = [(2.0, [0, 1, 4]), (1.0, [2, 3])]
    found = [i for n in range(1, 10) for i in weighted_indices(groups, 1, n, seed=0)]
    assert sorted(i for i in found if i in (0, 1, 4)) == [0, 0, 1, 1, 4, 4]
    assert Counter(i in (2, 3) for i in found) == {False: 6, True: 3}
    assert weighted_indices(groups, 9, 1, seed=0) == found


def test_shares_are_exact_over_a_round():
    groups = [(1.0, [0]), (0.25, [1]), (0.75, [2])]
    assert Counter(weighted_indices(groups, 1000, 2, seed=0)) == {0: 500, 1: 125, 2: 375}


def test_an_evaluation_has_each_environment_and_all(tmp_path):
    actor = ScriptedActor(lambda agent, text: "bet" if agent.startswith("player") else "Answer: 1")
    options = {"seed": 1, "tasks": 8, "split": None}
    result = evaluate(env=ENVS, actor=actor, **options)
    assert {n: len([e for e in result.episodes if e.env_name == n]) for n in ("math", "kuhn")} == {
        "math": 6,
        "kuhn": 2,
    }
    math, kuhn = (result.environments[name].mean_return for name in ("math", "kuhn"))
    assert result.mean_return == pytest.approx((6 * math + 2 * kuhn) / 8)
    assert result.as_dict()["environments"].keys() == {"math", "kuhn"}
    assert "environments" not in evaluate(env="mlrl/kuhn-v0", actor=actor, tasks=1).as_dict()


def test_environments_may_be_given_as_themselves():
    env = mlrl_envs.make("mlrl/kuhn-v0")
    actor = ScriptedActor(lambda agent, text: "bet")
    result = evaluate(env=[{"id": env, "name": "poker"}], actor=actor, tasks=2, split=None)
    assert result.environments.keys() == {"poker"}


CONFIG = """
env:
  - {id: mlrl/math-v2, weight: 3, options: {max_turns: 1}}
  - {id: mlrl/kuhn-v0, name: poker}
learner:
  model: tiny-random
  options: {group: {size: 2}, sampling: {max_new_tokens: 4}, team: {share_weights: true}}
train:
  {iterations: 1, tasks_per_iteration: 4, eval_every: 1, eval_tasks: 4}
"""


WORDS = ["train", "--env.split", "sample", "--train.eval_options.split", "sample"]


def test_a_configuration_lists_environments(tmp_path, capsys):
    path = tmp_path / "several.yaml"
    path.write_text(CONFIG)
    config = load_config(path)
    save_config(config, tmp_path / "again.yaml")
    assert load_config(tmp_path / "again.yaml") == config
    assert main([*WORDS, str(path), "--run-dir", str(tmp_path / "run"), "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    assert {"train/return", "train/math/return", "train/poker/turns"} <= metrics.keys()
    line = (tmp_path / "run/evaluations.jsonl").read_text().splitlines()[-1]
    assert {"eval/return", "eval/math/return", "eval/poker/solved_rate"} <= json.loads(line).keys()
    assert main(["evaluate", str(tmp_path / "run"), "--split", "sample", "--tasks", "4"]) == 0
    printed = capsys.readouterr().out
    assert "in math" in printed
    assert "in poker" in printed


def test_a_file_names_its_environments_from_any_folder(tmp_path, monkeypatch):
    from mlrl_learners.config.stored import with_absolute_paths

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    stored = with_absolute_paths(from_mapping({"env": ["mine.py:make", {"id": "mlrl/kuhn-v0"}]}))
    ids = [each["id"] for each in stored.env.options["envs"]]
    assert ids == [f"{tmp_path}/mine.py:make", "mlrl/kuhn-v0"]


def test_a_file_names_its_rewards_from_any_folder(tmp_path, monkeypatch):
    from mlrl_learners.config.stored import with_absolute_paths

    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    options = {"reward": "mine.py:one", "formatters": {"main": "mine.py:text"}}
    one = with_absolute_paths(from_mapping({"env": {"id": "mlrl/kuhn-v0", "options": options}}))
    several = with_absolute_paths(
        from_mapping({"env": [{"id": "mlrl/kuhn-v0", "options": options}, "mlrl/nim-v0"]})
    )
    for found in (one.env.options, several.env.options["envs"][0]["options"]):
        assert found["reward"] == f"{tmp_path}/mine.py:one"
        assert found["formatters"] == {"main": f"{tmp_path}/mine.py:text"}


def test_servers_belong_to_environments():
    (entry,) = from_mapping({"env": [{"id": "mlrl/kuhn-v0", "server": "host:1"}]}).env.options[
        "envs"
    ]
    assert entry == {"id": "remote://host:1/mlrl/kuhn-v0"}


def test_a_learner_without_an_agent_is_told_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="the learner lacks player_0, player_1: make it with"):
        run(tmp_path / "run", 1, learner_of(agents=["solver", "verifier"]))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("envs", "error", "words"),
    [
        ([], ConfigError, "at least one"),
        ([{"weight": 1}], ConfigError, "needs an id"),
        ([{"id": "mlrl/kuhn-v0", "wait": 1}], UnknownNameError, "did you mean 'weight'"),
    ],
)
def test_a_mistake_in_a_list_is_one_line(envs, error, words):
    with pytest.raises(error, match=words):
        from_mapping({"env": envs})
