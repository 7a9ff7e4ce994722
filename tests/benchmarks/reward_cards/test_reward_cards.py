"""Reward cards are current, and presets train on no reward that its card calls exploitable."""

import dataclasses
import importlib
import json

import pytest

import mlrl_envs
from benchmarks.reward_cards import __main__ as command
from benchmarks.reward_cards import confirm as confirmation
from benchmarks.reward_cards import measure, pages
from mlrl_envs.errors import InfraError, UnknownNameError
from mlrl_learners.config.presets import PRESETS
from mlrl_learners.config.run import load_config

# One repeats a published setting, one trains a random model in seconds.
EXEMPT = {"humaneval-paper", "tiny"}
# A model of 135 million parameters cannot tell sentences of other stories from a story about the
# prompt, so that a search still finds exploits. The card and the presets say so.
KNOWN_EXPLOITS = {("mlrl/story-v1", "judged")}
# Attacks that earn more than the best script, by the rules of the game.
GAINS = {
    # Giving nothing is the dominant move; the best script gives everything, which is best for all.
    "mlrl/public-goods-v0": {
        "first_move",
        "move_of_another",
        "random_move",
        "search",
        "untagged_move",
    },
}
GAMES = sorted(name for name, plan in measure.PLANS.items() if plan.is_game)
AUDITS = sorted(measure.AUDITS.glob("*.json"))


@pytest.fixture(scope="module")
def cards():
    pages.expected_pages()  # finds the module in docs
    return importlib.import_module("reference_cards")


def trained_on(name):
    """Return the environment and the mode of the reward that a preset trains on."""
    env = load_config(name).env
    return env.id, dict(env.options).get("reward", "grounded")


PRESET_NAMES = sorted(path.stem for path in PRESETS.glob("*.yaml"))


@pytest.mark.parametrize("path", AUDITS, ids=lambda path: path.stem)
def test_no_reward_has_changed_since_its_audit(path):
    try:
        assert measure.stale_line(path) is None
    except InfraError as error:  # the model of a text scorer is not installed
        pytest.skip(str(error))


def test_the_pages_are_what_the_audits_give():
    assert pages.stale_pages() == []


def test_every_environment_and_every_mode_that_presets_train_on_is_audited():
    wanted = {(env_id, "grounded") for env_id in measure.PLANS} | set(map(trained_on, PRESET_NAMES))
    missing = [place for place in sorted(wanted) if not measure.audit_path(*place).exists()]
    assert not missing, f"run python -m benchmarks.reward_cards for {missing}"
    assert set(measure.PLANS) == {name for name in mlrl_envs.registry if name.startswith("mlrl/")}


@pytest.mark.parametrize("name", sorted(set(PRESET_NAMES) - EXEMPT))
def test_presets_train_on_no_reward_that_is_not_for_training(name, cards):
    path = measure.audit_path(*trained_on(name))
    for_training = cards.is_for_training(json.loads(path.read_text("utf-8")))
    assert for_training != (trained_on(name) in KNOWN_EXPLOITS), cards.NOT_FOR_TRAINING


@pytest.mark.parametrize("env_id", GAMES)
def test_no_attack_earns_more_than_the_best_script_of_a_game(env_id, cards):
    audit = json.loads(measure.audit_path(env_id, "").read_text("utf-8"))
    assert set(audit["audit"]["exploits"]) == GAINS.get(env_id, set())
    assert cards.is_for_training(audit)


def test_a_game_in_which_a_text_without_a_move_earns_most_is_not_for_training(cards):
    audit = json.loads(measure.audit_path("mlrl/kuhn-v0", "").read_text("utf-8"))
    empty = next(each for each in audit["audit"]["results"] if each["name"] == "empty")
    empty |= {"gain": 1.0, "error": 0.1}
    assert not cards.is_for_training(audit)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of audits, and a short plan of an environment without data."""
    monkeypatch.setattr(measure, "AUDITS", tmp_path)
    plan = measure.Plan(split="sample", options={"max_turns": 1})
    monkeypatch.setitem(measure.PLANS, "mlrl/story-v1", plan)
    monkeypatch.setattr(command, "write_pages", lambda: None)
    return tmp_path


def test_an_audit_is_measured_once_and_again_after_a_change(folder, capsys):
    words = ["mlrl/story-v1", "--budget", "25", "--tasks", "1", "--resume"]
    assert command.main(words) == 0
    assert "mlrl/story-v1 grounded: honest" in capsys.readouterr().out
    path = folder / "story-v1.grounded.json"
    found = json.loads(path.read_text("utf-8"))
    assert len(found["audit"]["honest"]) > 40
    assert found["groups"]["models"]
    assert command.main(words) == 0
    assert capsys.readouterr().out == ""

    found["fingerprint"]["scorer"] = "of another reward"
    path.write_text(json.dumps(found))
    line = measure.stale_line(path)
    assert measure.stale_lines() == [line]
    assert line.startswith("mlrl/story-v1: its reward 'grounded' or prompts changed")
    assert line.endswith("run python -m benchmarks.reward_cards mlrl/story-v1 --modes grounded")
    assert command.main(words) == 0
    assert measure.stale_lines() == []


@pytest.fixture
def judged(folder, monkeypatch):
    """A stale judged audit of two honest answers, and a current one in `grounded`."""
    monkeypatch.setattr(confirmation.corpora, "people_shares", lambda *_: [])
    monkeypatch.setattr(confirmation.corpora, "earned", lambda *_: [0.5, 0.25])
    monkeypatch.setattr(confirmation, "stale_line", lambda path: None)
    path = folder / "story-v1.judged.json"
    stored = {
        "options": {"max_turns": 1, "split": "sample", "reward": "grounded"},
        "fingerprint": {"data": "", "scorer": "of before"},
        "groups": {"people": []},
        "audit": {"env_id": "mlrl/story-v1", "honest": [0.5, 0.25]},
    }
    path.write_text(json.dumps(stored))
    return path


def test_a_judged_audit_is_confirmed_if_honest_answers_earn_the_same(judged, capsys):
    assert command.main(["mlrl/story-v1", "--confirm"]) == 0
    assert "mlrl/story-v1 judged: confirmed" in capsys.readouterr().out
    found = json.loads(judged.read_text("utf-8"))
    assert found["measured_with"] == "of before"
    assert found["fingerprint"]["scorer"] not in ("", "of before")


def test_a_judged_audit_is_not_confirmed_if_honest_answers_earn_something_else(
    judged, capsys, monkeypatch
):
    before = judged.read_text("utf-8")
    monkeypatch.setattr(confirmation.corpora, "earned", lambda *_: [0.5, 0.75])
    assert command.main(["mlrl/story-v1", "--confirm"]) == 1
    assert "measure again, 1 of 2 honest answers earn something else" in capsys.readouterr().out
    monkeypatch.setattr(confirmation, "stale_line", lambda path: "changed")
    assert command.main(["mlrl/story-v1", "--confirm"]) == 1
    assert judged.read_text("utf-8") == before


def test_rewards_of_another_processor_are_compared_with_the_code_before(
    judged, capsys, monkeypatch
):
    words = ["mlrl/story-v1", "--confirm", "--before", str(judged.parent)]

    def confirm(before, now):
        found = iter([before, now])
        monkeypatch.setattr(confirmation, "_earned_by", lambda *_: next(found))
        status = command.main(words)
        return status, capsys.readouterr().out

    status, said = confirm(([0.5], [], "one"), ([0.5], [], "two"))
    assert (status, "another one" in said) == (1, True)
    status, said = confirm(([0.5], [], "one"), ([0.75], [], "one"))
    assert (status, "1 of 1 honest answers" in said) == (1, True)
    assert "measured_with" not in json.loads(judged.read_text("utf-8"))
    assert confirm(([0.5], [], "one"), ([0.5], [], "one"))[0] == 0
    assert json.loads(judged.read_text("utf-8"))["measured_with"] == "of before"


def test_the_code_of_now_earns_the_same_as_itself(judged, capsys):
    options = {"max_turns": 1, "split": "sample", "reward": "judged"}
    judged.write_text(json.dumps(json.loads(judged.read_text("utf-8")) | {"options": options}))
    words = ["mlrl/story-v1", "--confirm", "--before", str(confirmation._HERE)]
    assert command.main(words) == 0
    assert "confirmed" in capsys.readouterr().out
    earned, _, scorer = confirmation._earned_by(confirmation._HERE, "mlrl/story-v1", options)
    assert (len(earned) > 40, len(scorer)) == (True, 64)
    assert len(set(earned)) > 20  # arbitrary scores change what answers earn


def test_a_checkout_scores_with_its_own_code(tmp_path):
    package = tmp_path / "benchmarks" / "reward_cards"
    package.mkdir(parents=True)
    (tmp_path / "mlrl_envs").mkdir()
    for folder in (tmp_path / "mlrl_envs", package.parent, package):
        (folder / "__init__.py").touch()
    (tmp_path / "mlrl_envs" / "__init__.py").write_text(
        "from types import SimpleNamespace as Has\n"
        "made = Has(family=Has(scorer=Has(fingerprint='model')))\n"
        "make = lambda env_id, **options: made\n"
    )
    (package / "corpora.py").write_text(
        "honest_lines = lambda env_id: [env_id]\n"
        "earned = lambda env_id, options, lines, seed: [len(options), 0.123456]\n"
        "people_shares = lambda env_id, options, seed: []\n"
    )
    found = confirmation._earned_by(tmp_path, "mlrl/story-v1", {"split": "train"})
    assert found == ([2, 0.1235], [], "model")
    with pytest.raises(RuntimeError, match="cannot score"):
        confirmation._earned_by(tmp_path / "benchmarks", "mlrl/story-v1", {})


def test_an_audit_of_a_game_has_one_file_and_is_measured_once(folder, capsys):
    words = ["mlrl/kuhn-v0", "--budget", "12", "--tasks", "4", "--resume"]
    assert command.main(words) == 0
    assert "mlrl/kuhn-v0: honest" in capsys.readouterr().out
    path = folder / "kuhn-v0.json"
    found = json.loads(path.read_text("utf-8"))
    assert {each["name"] for each in found["audit"]["results"]} >= {"empty", "search"}
    assert command.main(words) == 0
    assert capsys.readouterr().out == ""
    found["fingerprint"]["scorer"] = "of other rules"
    path.write_text(json.dumps(found))
    (line,) = measure.stale_lines()
    assert line.startswith("mlrl/kuhn-v0: its rules or prompts changed after the audit")
    assert line.endswith("run python -m benchmarks.reward_cards mlrl/kuhn-v0")


def test_an_unknown_environment_is_named():
    with pytest.raises(UnknownNameError, match="story-v1"):
        command.main(["mlrl/stori-v1"])


def test_a_changed_page_is_named_and_written_again(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "expected_pages", lambda: {"reward_cards/one.md": "one\n"})
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    (tmp_path / "reward_cards").mkdir()
    (tmp_path / "reward_cards/old.md").write_text("of an audit that is gone\n")
    lines = pages.stale_pages()
    assert [line.split()[0] for line in lines] == [
        "docs/reward_cards/old.md",
        "docs/reward_cards/one.md",
    ]
    assert lines[0].endswith("run python -m benchmarks.reward_cards --cards-only")
    pages.write_pages()
    assert pages.stale_pages() == []


def test_an_audit_with_other_options_than_its_plan_is_stale(monkeypatch):
    plan = measure.PLANS["mlrl/kuhn-v0"]
    changed = dataclasses.replace(plan, split="eval")
    monkeypatch.setattr(measure, "PLANS", {**measure.PLANS, "mlrl/kuhn-v0": changed})
    line = measure.stale_line(measure.audit_path("mlrl/kuhn-v0", ""))
    assert "other options than its plan; run python -m benchmarks.reward_cards mlrl/kuhn" in line
