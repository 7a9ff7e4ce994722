"""Presets: every learner has one, its settings are those on record, and it runs."""

import json
import math
import re
from pathlib import Path

import pytest
import torch

import mlrl_learners
from mlrl_envs.registration import BUILT_IN_GAMES
from mlrl_learners.algorithms.magrpo import MagrpoConfig
from mlrl_learners.algorithms.policy_gradient_options import GroupOptions
from mlrl_learners.cli.train import train_config
from mlrl_learners.config.groups import build_config
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.config.presets import PRESETS, VARIANTS, preset_file, presets
from mlrl_learners.config.run import load_config, to_mapping
from mlrl_learners.functional.losses import value_loss
from mlrl_learners.registry import LearnerSpec, registry

SMALL_OPTIONS = {"sampling.max_new_tokens": "4", "group.size": "2"}
SMALL = [
    "--env.options.split", "sample",
    "--learner.model", "tiny-random",
    "--train.iterations", "1",
    "--train.tasks_per_iteration", "1",
    "--train.eval_tasks", "1",
    "--train.eval_samples", "1",
    "--train.eval_options", "{split: sample}",
]  # fmt: skip
RECORD = Path(__file__).parent / "presets.jsonl"
OURS = [name for name, spec in registry.items() if str(spec.factory).startswith("mlrl_learners.")]


@pytest.mark.parametrize("name", OURS)
def test_every_learner_has_a_preset_of_its_name(name):
    config = load_config(name)
    assert config.learner.name == name
    agents = ("a",) if config.env.options.get("num_aux") == 0 else ("a", "b")
    options = merge_options(config.learner.options, {"compute": {"precision": "float32"}})
    mlrl_learners.make(
        name,
        agents=agents,
        model="tiny-random",
        **merge_options(options, {"compute": {"device": "cpu"}}),
    )


def is_game(name):
    """Return whether a preset trains in a game, whose reward is its payoff."""
    return load_config(name).env.id in BUILT_IN_GAMES


RECORDED = {row.pop("preset"): row for row in map(json.loads, RECORD.read_text().splitlines())}


@pytest.mark.parametrize("name", RECORDED)
def test_the_resolved_configuration_is_the_one_on_record(name):
    assert to_mapping(load_config(name)) == RECORDED[name]


@pytest.mark.parametrize(("max_agents", "base"), [(None, "story"), (1, "grpo")])
def test_a_new_learner_has_the_settings_of_a_task(monkeypatch, max_agents, base):
    spec = LearnerSpec("brand_new", "somewhere:make", "a new method", max_agents)
    monkeypatch.setitem(registry._registered, spec.name, spec)
    assert presets()["brand_new"] == "a new method"
    assert load_config("brand_new") == load_config(base, ["--learner.name", "brand_new"])


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_is_its_base_with_another_learner(name):
    options = [
        word
        for group, options in VARIANTS[name].options.items()
        for option, value in options.items()
        for word in (f"--learner.{group}.{option}", str(value))
    ]
    base = load_config(VARIANTS[name].base, ["--learner.name", name, *options])
    assert load_config(name) == base


def test_the_learner_of_a_variant_can_be_replaced():
    assert load_config("magrpo", ["--learner.name", "marloo"]) == load_config("marloo")


def test_no_two_preset_files_have_the_same_settings():
    texts = [
        re.sub(r"#.*|name: .*", "", path.read_text("utf-8")) for path in PRESETS.glob("*.yaml")
    ]
    assert len(set(texts)) == len(texts)


@pytest.mark.parametrize("name", presets())
def test_a_preset_runs_one_iteration_with_a_tiny_model(name, tmp_path):
    known = load_config(name).learner.options
    options = [
        word
        for option, value in SMALL_OPTIONS.items()
        if option.partition(".")[0] in known
        for word in (f"--learner.options.{option}", value)
    ]
    if "overlong_buffer" in known.get("penalty", {}):
        options += ["--learner.options.penalty.overlong_buffer", "4"]
    if not is_game(name):
        options += ["--env.options.reward", "grounded"]
    config = load_config(name, [*SMALL, *options])
    result = train_config(config, tmp_path / "run", progress=False)
    assert result.iterations == 1
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["iteration"] for line in lines] == [1]


@pytest.mark.parametrize("env_id", BUILT_IN_GAMES)
def test_every_game_has_a_preset_in_which_all_seats_share_one_policy(env_id):
    config = load_config(env_id.removeprefix("mlrl/").removesuffix("-v0"))
    assert config.env.id == env_id
    assert config.learner.options["team"]["share_weights"]
    assert config.learner.options["sampling"]["temperature"] == 1.0


@pytest.mark.parametrize("name", presets())
def test_presets_of_prose_train_on_a_reward_that_reads_texts(name):
    env = load_config(name).env
    if env.id in ("mlrl/story-v1", "mlrl/tldr-v1", "mlrl/arxiv-v1", "mlrl/debate-v1"):
        assert name == "tiny" or env.options["reward"] == "judged"


@pytest.mark.parametrize("name", presets())
def test_a_preset_says_of_every_number_where_it_is_from(name):
    lines = preset_file(name).read_text("utf-8").splitlines()
    numbers = [line for line in lines if re.match(r"\s+[a-z_0-9]+: -?[0-9]", line)]
    assert numbers
    for line in numbers:
        assert re.search(r"  # (published|ours|comlrl 1\.4\.3|the default)", line), line


def test_the_published_preset_has_the_loss_that_was_published():
    """Term by term: -A/G * sum of log pi, A = (R - mean) / deviation, no clip, AdamW as it is."""
    config = build_config(MagrpoConfig, load_config("humaneval-paper").learner.options)
    assert (config.baseline.kind, config.loss.kind, config.clips) == (
        "mean",
        "sequence",
        (1.0, math.inf),
    )
    assert config.group == GroupOptions(4, "aligned", "tree")
    baseline, sampling, optimizer = config.baseline, config.sampling, config.optimizer
    assert (baseline.normalize_std, baseline.std_epsilon) == (True, 1e-6)
    assert not baseline.normalize_batch
    assert (optimizer.epochs, optimizer.num_minibatches) == (1, 1)
    assert (config.credit.gamma, config.penalty.kl_coef) == (1.0, 0.0)
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (0.6, 0.6, 50)
    assert (optimizer.lr, optimizer.weight_decay, optimizer.max_grad_norm) == (2e-5, 0.01, 0.0)
    assert (optimizer.beta1, optimizer.beta2, optimizer.schedule) == (0.9, 0.999, "constant")


@pytest.mark.parametrize("name", ["iac", "maac"])
def test_one_step_methods_have_the_losses_that_were_published(name):
    """-A * sum of log pi, and 0.6 (V - R)^2: this is 1.2 times our half of it."""
    learner = mlrl_learners.make(
        name, agents=("a", "b"), model="tiny-random", compute={"device": "cpu"}
    )
    config, values, targets = learner.config, torch.tensor([0.3, 2.0]), torch.tensor([1.0, -1.0])
    critic, loss = config.critic, config.loss
    ours = critic.value_coef * value_loss(values, torch.zeros(2), targets, critic.value_clip)
    assert torch.allclose(ours, 0.6 * (values - targets) ** 2)
    assert (loss.kind, config.clips, config.advantage.gae_lambda) == (
        "sequence",
        (1.0, math.inf),
        0.0,
    )
    assert (config.advantage.normalize, config.optimizer.epochs) == (True, 1)
