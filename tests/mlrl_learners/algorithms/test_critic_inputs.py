import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.algorithms.critic_inputs import joint_observation
from mlrl_learners.config.option_places import merge_options

SMALL = {"model": "tiny-random", "sampling": {"max_new_tokens": 4}, "compute": {"device": "cpu"}}


def estimates_of(toy, name="ippo", agents=("left", "right"), **options):
    learner = mlrl_learners.make(name, agents=agents, **merge_options(SMALL, options))
    rollouts = toy.play(learner, tasks=("one",), max_turns=2)
    return rollouts[0], learner.critics.estimate(rollouts)


def test_a_joint_observation_is_the_environments_own_state():
    env = mlrl_envs.make("mlrl/story-v1", split="sample")
    observations, _ = env.reset(seed=0)
    assert joint_observation(observations, env.possible_agents) == env.state()


def test_agents_that_have_left_are_not_read():
    assert joint_observation({"b": "y"}, ("a", "b")) == "[b]\ny"


@pytest.mark.parametrize(("artificial", "turns"), [(True, 3), (False, 2)])
def test_what_lies_behind_the_turn_limit_is_only_asked_about_if_the_limit_is_artificial(
    toy, artificial, turns
):
    learner = mlrl_learners.make("ippo", agents=("left", "right"), **SMALL)
    rollouts = toy.play(learner, tasks=("one",), max_turns=2, artificial_limit=artificial)
    estimates = learner.critics.estimate(rollouts, bootstrap=True)
    asked = [f"one, turn {turn}" for turn in range(turns)]
    assert sorted(estimates.prompts) == [
        (agent, text) for agent in ("left", "right") for text in asked
    ]
    assert all(len(estimates.values[key]) == 1 for key in estimates.prompts)


def test_a_value_head_reads_the_very_tokens_that_were_sampled_from(toy):
    rollout, estimates = estimates_of(
        toy, critic={"kind": "value_head"}, team={"system_prompts": {"left": "Be brief."}}
    )
    for agent, completions in rollout.root.completions.items():
        assert estimates.prompt(agent, rollout.root.observations) == completions[0].prompt_ids


def test_a_critic_of_its_own_is_told_what_its_agent_is_told(toy):
    rollout, estimates = estimates_of(toy, team={"system_prompts": {"left": "Be brief."}})
    for agent, completions in rollout.root.completions.items():
        assert estimates.prompt(agent, rollout.root.observations) == completions[0].prompt_ids


def test_a_joint_prompt_may_be_as_long_as_all_the_agents_prompts(toy):
    _, estimates = estimates_of(toy, "mappo", team={"max_prompt_tokens": 45})
    assert 45 < max(len(prompt) for prompt in estimates.prompts.values()) <= 90


def test_a_central_critic_has_one_value_an_agent(toy):
    _, estimates = estimates_of(toy, "mappo")
    assert all(len(values) == 2 for values in estimates.values.values())
