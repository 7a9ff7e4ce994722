import json
from pathlib import Path

import pytest

from mlrl_learners.report.reward_card import MAX_RATIO, draw_reward_card, reward_card_of

AUDITS = sorted((Path(__file__).parents[3] / "benchmarks/audits").glob("*.json"))


@pytest.mark.parametrize("path", AUDITS, ids=lambda path: path.stem)
def test_every_stored_audit_is_found_by_the_options_of_a_run(path):
    stored = json.loads(path.read_text("utf-8"))
    mode = stored["options"].get("reward", "")
    options = {"env.id": stored["audit"]["env_id"]}
    card = reward_card_of(options | ({"env.options.reward": mode} if mode else {}))
    assert card.reward == mode
    assert card.honest == stored["audit"]["honest_mean"]
    assert card.worst == stored["audit"]["worst"]
    shown = draw_reward_card(card)
    assert f"{card.honest:.2f}" in shown
    assert ("not for training" in shown) is not card.is_sound


def test_the_verdict_follows_from_the_ratio():
    story = reward_card_of({"env.id": "mlrl/story-v1"})
    assert story.ratio == pytest.approx(story.worst_earns / story.honest, abs=1e-3)
    assert story.ratio > MAX_RATIO
    assert not story.is_sound
    assert reward_card_of({"env.id": "mlrl/humaneval-v1"}).is_sound


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"env.id": "mine/env-v0"},
        {"env.id": "mlrl/../audits/story-v1"},
        {"env.id": "mlrl/no-such-v1"},
        {"env.id": "mlrl/story-v1", "env.options.reward": "mine:reward"},
        {"env.id": "mlrl/story-v1", "env.options.reward": "../story-v1.paper"},
    ],
)
def test_a_reward_that_was_not_audited_has_no_card(options):
    assert reward_card_of(options) is None
