import pytest
import torch

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import CheckpointError, ConfigError, UnknownNameError
from mlrl_learners.functional.returns import joint_returns
from mlrl_learners.testing import check_learner
from mlrl_learners.types import RolloutConfig
from tests.mlrl_learners.algorithms.preference_learners import episode, write

AGENTS = ("left", "right")
TEAM_METHODS = ["magrpo", "mareinforce", "marloo", "maremax", "ippo", "mappo", "iac", "maac"]
SOLO_METHODS = ["grpo", "rloo", "reinforce_pp", "ppo"]


def make(seed=0, agents=AGENTS, **options):
    small = {
        "model": "tiny-random",
        "sampling": {"max_new_tokens": 8},
        "compute": {"device": "cpu"},
        "reward_model": {"epochs": 2},
    }
    return mlrl_learners.make("marlhf", agents=agents, seed=seed, **merge_options(small, options))


def weights(learner):
    policies = [p for policy in learner.policies.values() for p in policy.model.parameters()]
    return [p.clone() for p in [*policies, *learner.reward_model._optimizer.parameters]]


def prompts_file(path, count):
    shown = [episode(f"{good}{i}", "b", float(good), prompt=f"task {i}")
             for i in range(count) for good in (0, 1)]  # fmt: skip
    return write(path, *shown)


@pytest.mark.parametrize(
    ("method", "agents"),
    [(name, AGENTS) for name in TEAM_METHODS] + [(name, ("solo",)) for name in SOLO_METHODS],
)
def test_any_policy_gradient_method_learns_from_the_reward_model(method, agents, toy):
    learner = make(agents=agents, method=method, group={"size": 2})
    before = weights(learner)
    metrics = learner.update(toy.play(learner))
    changed = [not torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True)]
    assert sum(changed) > 0.9 * len(changed)
    assert metrics["reward_model/pairs"] > 0
    assert metrics[f"{agents[0]}/grad_norm"] > 0


def test_every_joint_answer_is_paid_its_score_and_nothing_else_changes(toy):
    learner = make(reward_model={"normalize_rewards": False})
    rollouts = toy.play(learner, max_turns=2)
    learner.update(rollouts)
    rescored = learner.rescored(rollouts)
    for old, new in zip(rollouts, rescored, strict=True):
        for node, judged in zip(old.root.walk(), new.root.walk(), strict=True):
            assert judged.completions == node.completions
            texts = [learner._text(node, step, None) for step in node.steps]
            scores = learner.reward_model.scores(texts)
            for step, score in zip(judged.steps, scores, strict=True):
                assert step.rewards == dict.fromkeys(AGENTS, pytest.approx(score, abs=1e-6))


def test_normalized_scores_have_mean_zero_and_deviation_one(toy):
    learner = make(reward_model={"lr": 1e-2})
    rollouts = toy.play(learner)
    learner.update(rollouts)
    found = torch.tensor([s.rewards["left"] for r in learner.rescored(rollouts)
                          for s in r.root.steps])  # fmt: skip
    assert float(found.mean()) == pytest.approx(0.0, abs=1e-5)
    assert float(found.std(correction=0)) == pytest.approx(1.0, abs=1e-4)


def test_a_score_is_of_all_that_came_of_an_answer_so_that_later_turns_are_not_added(toy):
    learner = make(preferences={"gamma": 0.5})
    assert learner.learner.config.credit.gamma == 0.0
    rollouts = toy.play(learner, max_turns=2)
    worth = joint_returns(rollouts[0].root, "left", 0.5)
    pair = next(learner._pairs(rollouts[:1]))
    assert pair.gap == pytest.approx(max(worth) - min(worth))


def test_pairs_just_played_are_judged_before_they_are_learnt_from(toy):
    learner = make(reward_model={"epochs": 30, "lr": 1e-2})
    first = learner.update(toy.play(learner))
    assert first["reward_model/held_out_accuracy"] == 0.5  # the head had said nothing yet
    assert first["reward_model/accuracy"] > 0.8


def test_equal_rewards_teach_the_reward_model_nothing(toy):
    learner = make()
    before = weights(learner)
    metrics = learner.update(toy.play(learner, reward=lambda *_: 0.7))
    assert metrics["reward_model/pairs"] == 0.0
    assert "reward_model/loss" not in metrics
    assert all(torch.equal(a, b) for a, b in zip(before, weights(learner), strict=True))


def test_held_out_decision_points_of_a_file_are_never_learnt_from(tmp_path, toy):
    learner = make(
        preferences={"episodes": prompts_file(tmp_path / "e", 10), "held_out": 0.3, "num_pairs": 4}
    )
    known, unknown = learner.examples
    assert (len(known), len(unknown)) == (7, 3)
    prompts = [{pair.better.split("\n")[1] for pair in pairs} for pairs in (known, unknown)]
    assert not prompts[0] & prompts[1]
    learnt = []
    learner.reward_model.learn = lambda pairs, _: learnt.extend(pairs) or {}
    for _ in range(4):
        metrics = learner.update(toy.play(learner))
    assert len(learnt) == 16
    assert set(learnt) == set(known)  # every one comes before any comes again
    assert 0.0 <= metrics["reward_model/held_out_accuracy"] <= 1.0


def test_a_file_of_one_decision_point_holds_nothing_out(tmp_path, toy):
    learner = make(preferences={"episodes": prompts_file(tmp_path / "e", 1), "held_out": 0.9})
    assert [len(pairs) for pairs in learner.examples] == [1, 0]
    assert "reward_model/held_out_accuracy" not in learner.update(toy.play(learner))


def test_a_file_without_a_choice_is_an_error(tmp_path, toy):
    learner = make(preferences={"episodes": write(tmp_path / "e", episode("a", "b", 0.1))})
    with pytest.raises(ConfigError, match=r"holds no two joint answers .* --samples 2 or more"):
        learner.update(toy.play(learner))


def test_a_file_of_other_agents_is_an_error(tmp_path, toy):
    file = prompts_file(tmp_path / "e", 2)
    learner = make(agents=("setup", "story"), preferences={"episodes": file})
    with pytest.raises(ConfigError, match="for setup, story: its agents are left, ri"):
        learner.update(toy.play(learner))


def test_a_single_answer_a_prompt_teaches_the_reward_model_nothing(tmp_path):
    with pytest.raises(ConfigError, match=r"num_samples must be at least 2 .* got 1"):
        make(method="ippo").check_rollout(RolloutConfig(1))
    file = prompts_file(tmp_path / "e", 2)
    make(method="ippo", preferences={"episodes": file}).check_rollout(RolloutConfig(1))
    with pytest.raises(ConfigError, match="at least 2 answers a prompt"):
        make(method="magrpo", preferences={"episodes": file}).check_rollout(RolloutConfig(1))


@pytest.mark.parametrize("method", ["magrpo", "ippo"])
def test_saved_and_loaded_it_goes_on_exactly_where_it_was(method, tmp_path, toy):
    options = {
        "method": method,
        "preferences": {"episodes": prompts_file(tmp_path / "e", 9), "num_pairs": 2},
    }
    learner, other = make(0, **options), make(99, **options)
    learner.update(toy.play(learner))
    learner.save(tmp_path / "saved")
    other.load(tmp_path / "saved")
    for each in (learner, other):
        each.__dict__.pop("examples", None)  # as after a restart
        each.update(toy.play(each))
    assert all(map(torch.equal, weights(learner), weights(other)))


def test_a_checkpoint_of_the_method_alone_is_refused(tmp_path):
    make().learner.save(tmp_path)
    with pytest.raises(CheckpointError):
        make().load(tmp_path)


@pytest.mark.parametrize("text", ["{}", "[]"])
def test_a_damaged_count_of_updates_is_said_so(text, tmp_path):
    make().save(tmp_path)
    (tmp_path / "marlhf.json").write_text(text)
    with pytest.raises(CheckpointError, match="is of no reward model"):
        make().load(tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "sft"}, "method must be magrpo or .* got 'sft'"),
        ({"reward_lrr": 0.1}, "unknown option 'reward_lrr'; did you mean 'reward_model.lr'"),
        ({"group_sise": 2}, "unknown option 'group_sise'; did you mean 'group.size'"),
        (
            {"critic": {"kind": "central"}},
            "critic is a group of ippo, mappo, .* got method magrpo",
        ),
        (
            {"credit": {"kind": "outcome"}},
            "credit.kind must be shared, team, mixed, difference, leave_one_out or replay",
        ),
        ({"reward_model": {"lr": 0.0}}, "reward_model.lr must be above 0, got 0"),
        ({"reward_model": {"epochs": 0}}, "reward_model.epochs must be at least 1, got 0"),
        ({"preferences": {"held_out": 1.0}}, r"held_out must be in \[0, 1\), got 1"),
        (
            {"reward_model": {"label_smoothing": 0.5}},
            r"label_smoothing must be in \[0, 0.5\), got 0.5",
        ),
        ({"preferences": {"gamma": 1.5}}, r"gamma must be in \[0, 1\], got 1.5"),
        ({"method": "grpo"}, "grpo trains one agent, got 2"),
    ],
)
def test_a_mistake_is_one_clear_line(options, message):
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        make(**options)


def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_weights(tmp_path):
    def run(folder, iterations, *, resume=False):
        learner = make(agents=("setup", "story"), group={"size": 2})
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options={"split": "sample"},
            learner=learner,
            iterations=iterations,
            run_dir=tmp_path / folder,
            tasks_per_iteration=1,
            resume=resume,
            progress=False,
            config={"name": "the same run"},
        )
        return weights(learner)

    whole = run("whole", 3)
    run("stopped", 2)
    assert all(map(torch.equal, whole, run("stopped", 3, resume=True)))


def test_the_contract_of_a_learner_is_kept():
    check_learner(lambda: make(optimizer={"lr": 1e-3}))
