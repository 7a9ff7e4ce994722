import itertools

import pytest

import mlrl_envs
from mlrl_envs.errors import InfraError
from mlrl_learners.errors import ConfigError
from mlrl_learners.interop import TeamView

DEEP = {"reward": "paper", "max_turns": 3}
TEXTS = ("A fox waits.", "A fox waits in the snow for the ferryman.", "")


def prompts(view, item, external=(None, None)):
    """Ask for every agent's prompt, as the trainer does before it samples."""
    return [
        formatter(item) if said is None else formatter(item, external_prompts=said)
        for formatter, said in zip(view.formatters, external, strict=True)
    ]


def replay(history, index, **options):
    """Return what the environment itself says of a line of play: last prompts, last reward."""
    env = mlrl_envs.make("mlrl/story-v1", **options)
    read, _ = env.reset(seed=0, options={"task_index": index})
    earned = None
    for joint in history:
        read, rewards, *_ = env.step(dict(zip(env.possible_agents, joint, strict=True)))
        earned = sum(rewards.values()) / len(rewards)
    return list(read.values()), earned


def test_a_row_holds_what_all_read():
    view = TeamView("mlrl/story-v1")
    rows = view.rows()
    assert [row["task_index"] for row in rows] == list(range(len(rows)))
    assert all(text in rows[3]["prompt"] for text in prompts(view, rows[3]))


def test_a_tree_walked_depth_first_earns_what_the_environment_pays():
    view = TeamView("mlrl/story-v1", **DEEP)
    for item in view.rows()[:2]:
        walk(view, item, (), (None, None))


def walk(view, item, history, external):
    index = item["task_index"]
    assert prompts(view, item, external) == replay(history, index, **DEEP)[0]
    joints = list(itertools.pairwise(TEXTS))
    for joint in joints:  # all rewards of a node come before any of its children
        expected = replay((*history, joint), index, **DEEP)[1]
        assert view.reward(*([text] for text in joint)) == [expected]
    if len(history) < 2:
        for joint in joints:
            line = (*history, joint)
            written = [list(texts) for texts in zip(*line, strict=True)]
            following = view.transition(
                prompt=item["prompt"],
                agent_completions=list(joint),
                num_agents=2,
                prompt_history_per_agent=[[], []],
                response_history_per_agent=written,
            )
            walk(view, item, line, following)


def test_an_evaluation_may_ask_for_the_first_prompt_in_the_middle_of_an_episode():
    view = TeamView("mlrl/story-v1", max_turns=2)
    item = view.rows()[4]
    prompts(view, item)
    joint = (TEXTS[0], TEXTS[1])
    view.reward(*([text] for text in joint))
    following = view.transition(response_history_per_agent=[[text] for text in joint])
    prompts(view, item, following)
    view.formatters[0](item)
    expected = replay((joint, joint), 4, max_turns=2)[1]
    assert view.reward(*([text] for text in joint)) == [expected]


def test_several_joint_actions_can_be_asked_for_at_once():
    view = TeamView("mlrl/story-v1", reward="paper")
    prompts(view, view.rows()[0])
    found = view.reward(list(TEXTS), list(reversed(TEXTS)))
    pairs = zip(TEXTS, reversed(TEXTS), strict=True)
    assert found == [replay([pair], 0, reward="paper")[1] for pair in pairs]


def test_a_task_that_is_over_earns_nothing_more(addition_env):
    view = TeamView(addition_env)
    prompts(view, {"task_index": 0})
    assert view.reward(["1"], ["1"]) == [1.0]
    following = view.transition(response_history_per_agent=[["1"], ["1"]])
    prompts(view, {"task_index": 0}, following)
    assert view.reward(["1"], ["1"]) == [0.0]


def test_what_agents_read_is_put_into_the_chat_template():
    class Tokenizer:
        chat_template = "a template"

        def apply_chat_template(self, messages, *, tokenize, add_generation_prompt):
            (message,) = messages
            return f"<{message['role']}>{message['content']}<assistant>"

    item = {"task_index": 1}
    bare, wrapped = TeamView("mlrl/story-v1"), TeamView("mlrl/story-v1", tokenizer=Tokenizer())
    assert prompts(wrapped, item) == [f"<user>{text}<assistant>" for text in prompts(bare, item)]


def test_callbacks_in_the_wrong_order_are_refused(addition_env):
    view = TeamView(addition_env)
    with pytest.raises(ConfigError, match="before it formatted"):
        view.reward(["1"], ["1"])
    prompts(view, {"task_index": 0})
    with pytest.raises(ConfigError, match="did not score"):
        view.transition(response_history_per_agent=[["1"], ["1"]])


def test_a_single_agent_is_sent_elsewhere():
    with pytest.raises(ConfigError, match=r"interop\.trl"):
        TeamView("mlrl/humaneval-v1", split="sample", num_aux=0)


def test_broken_infrastructure_is_raised_and_never_a_reward(addition_env):
    view = TeamView(addition_env, broken=True)
    prompts(view, {"task_index": 3})
    with pytest.raises(InfraError):
        view.reward(["4"], ["4"])


@pytest.mark.parametrize("joint_mode", ["aligned", "cross"])
def test_the_trainer_itself_trains_and_evaluates_on_the_rewards_of_the_environment(joint_mode):
    reinforce = pytest.importorskip("comlrl.trainers.reinforce", reason="needs comlrl")
    from mlrl_learners.policies.tiny import tiny_model

    seen = []

    class Watched(TeamView):
        def reward(self, *completions):
            found = super().reward(*completions)
            joints = zip(*completions, strict=True)
            seen.extend((self._here, *each) for each in zip(joints, found, strict=True))
            return found

    models, tokenizers = zip(*(tiny_model(seed) for seed in (0, 1)), strict=True)
    view = Watched("mlrl/story-v1", tokenizer=tokenizers[0], reward="paper", max_turns=2)
    given = view.arguments()
    given["train_dataset"] = given["train_dataset"].select([6])
    before = [model.get_input_embeddings().weight.clone() for model in models]
    trainer = reinforce.MAGRPOTrainer(
        agents=list(models),
        tokenizer=list(tokenizers),
        eval_dataset=given["train_dataset"],
        args=reinforce.MAGRPOConfig(
            num_train_epochs=1,
            num_generations=2,
            max_new_tokens=8,
            joint_mode=joint_mode,
            early_termination_threshold=None,
            eval_interval=1,
            eval_num_samples=1,
            rollout_buffer_size=1,
            agent_learning_rate=1e-3,
        ),
        **given,
    )
    trainer.train()
    joint = 2 if joint_mode == "aligned" else 4
    assert len(seen) == 2 + joint + joint * joint  # a line of evaluation, then the tree
    for history, last, reward in seen:
        assert reward == replay((*history, last), 6, reward="paper", max_turns=2)[1]
    after = [model.get_input_embeddings().weight for model in models]
    assert all(not a.equal(b) for a, b in itertools.zip_longest(before, after))
