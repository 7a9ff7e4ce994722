"""Learning rates of whole learners: they fall over a run, and count its updates."""

import json

import pytest

import mlrl_learners
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.testing import check_learner

AGENTS = ("left", "right")
SMALL = {
    "model": "tiny-random",
    "sampling": {"max_new_tokens": 6},
    "compute": {"device": "cpu"},
    "optimizer": {"schedule": "linear"},
}
# A learner, its options, and how many optimizer steps an update has.
LEARNERS = [
    ("magrpo", {"optimizer": {"epochs": 2, "num_minibatches": 2}}, 4),
    ("ippo", {"optimizer": {"num_minibatches": 2}}, 4),
    ("ippo", {"critic": {"kind": "value_head"}}, 2),
    ("mappo", {"optimizer": {"epochs": 3}}, 3),
    ("madpo", {"optimizer": {"epochs": 2}, "group": {"size": 4}}, 2),
    ("sft", {}, 1),
    ("marlhf", {"optimizer": {"num_minibatches": 2}}, 2),
]


def make(name, **options):
    return mlrl_learners.make(name, agents=AGENTS, seed=0, **merge_options(SMALL, options))


def optimizers(learner):
    team = getattr(learner, "learner", learner)
    critics = getattr(team, "critics", None)
    return [*team.optimizers.values(), *(critics.optimizers.values() if critics else ())]


def rates(metrics):
    return [value for name, value in metrics.items() if name.endswith(("/lr", "/critic_lr"))]


@pytest.mark.parametrize(("name", "options", "steps"), LEARNERS)
def test_the_rate_falls_over_the_whole_run_and_stays_above_0(toy, name, options, steps):
    learner = make(name, **merge_options(options, {"optimizer": {"lr": 1e-3}}))
    learner.plan_updates(3)
    last = 1e-3 / (3 * steps)
    for number in range(3):
        found = rates(learner.update(toy.play(learner, seed=number)))
        method = [rate for rate in found if rate < 1e-3]  # the reward model's is constant
        expected = 1e-3 - last * (steps * (number + 1) - 1)
        assert method == pytest.approx([expected] * len(method))
        assert expected == 1e-3 or method
    with pytest.raises(ConfigError, match="is over after"):
        learner.update(toy.play(learner))


@pytest.mark.parametrize(("name", "options", "steps"), LEARNERS)
def test_updates_that_teach_nothing_count(toy, name, options, steps):
    """Groups of equal rewards, no pairs, nothing that earned enough: the schedule goes on."""
    options = (
        merge_options(options, {"examples": {"filter_reward": 2.0}}) if name == "sft" else options
    )
    learner = make(name, **options)
    learner.plan_updates(3)
    for _ in range(2):
        learner.update(toy.play(learner, reward=lambda _, __: 1.0))
    learner.update([])
    for optimizer in optimizers(learner):
        assert optimizer.num_updates == 3
        assert 2 * steps <= optimizer.num_steps <= 3 * steps


@pytest.mark.parametrize(("name", "options", "steps"), LEARNERS)
def test_a_run_that_would_end_at_rate_0_is_refused(name, options, steps):
    learner = make(name, **merge_options(options, {"optimizer": {"total_steps": 3 * steps - 1}}))
    with pytest.raises(ConfigError, match=f"{3 * steps - 1} is below the {3 * steps} optimizer"):
        learner.plan_updates(3)


def test_a_falling_rate_without_a_plan_is_an_error_at_the_first_update(toy):
    learner = make("magrpo")
    with pytest.raises(ConfigError, match="its length is not known"):
        learner.update(toy.play(learner))


def test_updates_are_counted_over_a_checkpoint(toy, tmp_path):
    one, two = make("magrpo", optimizer={"lr": 1e-3}), make("magrpo", optimizer={"lr": 1e-3})
    for learner in (one, two):
        learner.plan_updates(4)
    one.update(toy.play(one))
    one.update(toy.play(one, reward=lambda _, __: 1.0))  # takes no step
    one.save(tmp_path)
    two.load(tmp_path)
    found = [learner.update(toy.play(learner, seed=7)) for learner in (one, two)]
    assert found[0] == found[1]
    assert rates(found[0]) == pytest.approx([0.5e-3] * 2)


def test_an_update_that_failed_half_way_leaves_no_gradient(toy, monkeypatch):
    learner = make("madpo", optimizer={"schedule": "constant"}, group={"size": 4})
    for optimizer in optimizers(learner):
        for parameter in optimizer.parameters:
            parameter.grad = parameter.detach().clone()
    found = toy.gradients(learner, toy.play(learner), monkeypatch)
    other = make("madpo", optimizer={"schedule": "constant"}, group={"size": 4})
    for mine, theirs in zip(found, toy.gradients(other, toy.play(other), monkeypatch), strict=True):
        assert mine.equal(theirs)


def test_a_learner_with_a_falling_rate_keeps_the_contract():
    check_learner(lambda: make("magrpo"))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def train(folder, learner, iterations, **options):
    return mlrl_learners.train(
        env_id="mlrl/story-v1",
        env_options={"reward": "paper"},
        learner=learner,
        iterations=iterations,
        tasks_per_iteration=1,
        run_dir=folder,
        progress=False,
        **options,
    )


def story(**options):
    return mlrl_learners.make(
        "magrpo",
        agents=["setup", "story"],
        **merge_options(SMALL, {"baseline": {"skip_equal_groups": False}}, options),
    )


def test_train_tells_the_learner_how_many_updates_there_are(tmp_path):
    train(tmp_path, story(optimizer={"lr": 1e-3}), 4)
    found = [line["setup/lr"] for line in lines(tmp_path / "metrics.jsonl")]
    assert found == pytest.approx([1e-3, 0.75e-3, 0.5e-3, 0.25e-3])


def test_a_run_that_is_resumed_for_more_iterations_falls_over_all_of_them(tmp_path):
    train(tmp_path, story(optimizer={"lr": 1e-3}), 2)
    train(tmp_path, story(optimizer={"lr": 1e-3}), 4, resume=True)
    found = [line["setup/lr"] for line in lines(tmp_path / "metrics.jsonl")]
    assert found == pytest.approx([1e-3, 0.5e-3, 0.5e-3, 0.25e-3])


def test_train_refuses_a_schedule_that_ends_early_before_anything_is_written(tmp_path):
    with pytest.raises(ConfigError, match="total_steps 3 is below the 4 optimizer steps"):
        train(tmp_path / "run", story(optimizer={"total_steps": 3}), 4)
    assert not (tmp_path / "run").exists()
