from pathlib import Path

import pytest

import mlrl_envs
from mlrl_envs.errors import ContractError, InfraError, UnknownNameError
from mlrl_learners.actors import RandomActor, ReferenceActor, ScriptActor
from mlrl_learners.errors import ConfigError
from mlrl_learners.interop import SingleAgentView
from mlrl_learners.policies import tiny_model
from mlrl_learners.testing import ScriptedActor


def right_answer(agent, text):
    return str(int(text) + 1)


@pytest.fixture
def view(addition_env):
    return SingleAgentView(addition_env, agent="left", teammates=ScriptedActor(right_answer))


def test_a_row_is_a_message_of_what_the_agent_reads(view):
    rows = view.rows()
    assert [row["task_index"] for row in rows] == [0, 1, 2, 3]
    assert rows[2]["prompt"] == [{"role": "user", "content": "2"}]


def test_a_completion_earns_what_the_agent_earns_in_its_task(view):
    rewards = view.reward(
        prompts=["?"] * 4,
        completions=["1", [{"role": "assistant", "content": "4"}], [{"content": None}], [{}]],
        task_index=[0, 3, 3, 0],
        completion_ids=[],
        trainer_state=None,
    )
    assert rewards == [1.0, 1.0, 0.0, 0.0]


def test_rewards_are_those_of_the_environment():
    view = SingleAgentView("mlrl/story-v1", agent="story", teammates=ScriptedActor(fox), seed=5)
    texts = ["The fox waited.", "", "A fox waited in the snow for a ferryman all night long."]
    found = view.reward(prompts=[], completions=texts, task_index=[1, 1, 7])
    env = mlrl_envs.make("mlrl/story-v1")
    for text, index, reward in zip(texts, [1, 1, 7], found, strict=True):
        env.reset(seed=5, options={"task_index": index})
        assert reward == env.step({"setup": fox(), "story": text})[1]["story"]


def fox(*_):
    return "A fox waits in the snow for the ferryman."


def test_teammates_may_look_at_the_environment(addition_env):
    view = SingleAgentView(addition_env, agent="left", teammates=ReferenceActor())
    assert view.reward(prompts=[], completions=["1"], task_index=[0]) == [1.0]


def test_completions_are_scored_at_the_position_of_their_prompts():
    view = SingleAgentView(
        "mlrl/kuhn-v0", agent="player_1", split="eval", teammates=ScriptActor("random")
    )
    rows = view.rows()[:20] * 2
    prompts, tasks = ([row[name] for row in rows] for name in ("prompt", "task_index"))
    legal = [("check", "call")["call, fold" in prompt[0]["content"]] for prompt in prompts]
    texts = [f"<move>{move}</move>" for move in legal]
    rewards = view.reward(prompts=prompts, completions=texts, task_index=tasks)
    assert set(rewards) <= {-2.0, -1.0, 1.0, 2.0}  # an illegal move costs 0.5


def test_answers_after_the_first_turn_are_drawn_anew():
    view = SingleAgentView(
        "mlrl/kuhn-v0", agent="player_0", split="eval",
        teammates=ScriptActor("random"),
    )  # fmt: skip
    rewards = view.reward(prompts=[], completions=["<move>bet</move>"] * 40, task_index=[0] * 40)
    assert len(set(rewards)) > 1


@pytest.mark.parametrize("plays", ["reward", "environment"])
def test_a_prompt_of_another_position_is_an_error(view, plays):
    shown = [{"role": "system", "content": "Add 1."}, {"role": "user", "content": "Read: 2"}]
    parts = [{"role": "user", "content": [{"type": "text", "text": "2"}, {"type": "image"}]}]
    called = [{"role": "assistant", "tool_calls": []}, {"role": "tool", "content": "2"}]

    def play(prompt, task):
        if plays == "reward":
            view.reward(prompts=[prompt], completions=["3"], task_index=[task])
        else:
            view.environment().reset(task_index=task, prompt=prompt)

    for prompt in (shown, parts, called, "a text"):
        play(prompt, 2)
    for prompt in (shown, parts, called, [{"role": "user", "content": None}]):
        with pytest.raises(ConfigError, match="the prompt of task 3 shows another position"):
            play(prompt, 3)


def test_teammates_that_do_not_answer_are_named(addition_env):
    class Silent:
        def act(self, observations, *, num_samples=1, explore=True):
            return [{} for _ in observations]

    view = SingleAgentView(addition_env, agent="left", teammates=Silent())
    with pytest.raises(ContractError, match=r"Silent\.act must answer for exactly right"):
        view.reward(prompts=[], completions=["1"], task_index=[0])


def test_an_environment_of_one_agent_needs_no_more_words():
    view = SingleAgentView("mlrl/humaneval-v1", split="sample", num_aux=0)
    assert view.agent == "main"
    env = mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0)
    env.reset(options={"task_index": 1})
    right = env.reference_actions()["main"]
    rewards = view.reward(prompts=[], completions=[right, "no"], task_index=[1, 1])
    assert rewards[0] > 0.9 > 0.1 > rewards[1]


def test_what_is_missing_is_said(addition_env):
    with pytest.raises(ConfigError, match="left, right: say which one learns"):
        SingleAgentView(addition_env)
    with pytest.raises(UnknownNameError, match="'left'"):
        SingleAgentView(addition_env, agent="lft", teammates=RandomActor())


def test_broken_infrastructure_is_raised_and_never_a_reward(addition_env):
    teammates = ScriptedActor(right_answer)
    view = SingleAgentView(addition_env, agent="left", teammates=teammates, broken=True)
    with pytest.raises(InfraError):
        view.reward(prompts=[], completions=["4"], task_index=[3])


def test_rows_become_a_dataset(view):
    pytest.importorskip("datasets")
    assert view.dataset().to_list() == view.rows()


def playing(addition_env, **options):
    view = SingleAgentView(
        addition_env, agent="left", teammates=ScriptedActor(right_answer), **options
    )
    return view.environment()


def test_a_tool_plays_turn_after_turn(addition_env):
    environment = playing(addition_env)
    for _ in range(2):  # instances are used again
        environment.reset(task_index=2, prompt=[])
        assert environment.answer("9") == "2"
        assert environment.answer("3") == "The episode is over."
        assert environment.answer("again") == "The episode is over."
        assert environment.get_reward() == 1.0


def test_silence_is_an_empty_answer(addition_env):
    environment = playing(addition_env)
    environment.reset(task_index=2)
    assert environment.get_reward() == 0.0
    assert environment.answer("3") == "The episode is over."  # the second turn
    assert environment.get_reward() == 1.0


def test_broken_infrastructure_is_raised_again_where_the_reward_is_asked_for(addition_env):
    environment = playing(addition_env, broken=True)
    environment.reset(task_index=3)
    with pytest.raises(InfraError):
        environment.answer("4")
    with pytest.raises(InfraError):
        environment.get_reward()
    environment.reset(task_index=2)
    environment.answer("3")
    assert environment.get_reward() == 1.0


CALL = '<tool_call>\n{"name": "answer", "arguments": {"text": "%s"}}\n</tool_call><|im_end|>'


@pytest.mark.slow
def test_trl_trains_over_several_turns(addition_env, tmp_path, monkeypatch):
    trl = pytest.importorskip("trl", reason="trl is not installed")
    pytest.importorskip("datasets")
    monkeypatch.setenv("TRL_EXPERIMENTAL_SILENCE", "1")
    model, tokenizer = tiny_model()
    templates = Path(trl.__file__).parent / "chat_templates"
    tokenizer.chat_template = (templates / "qwen3.jinja").read_text()
    asked = []

    class Scripted(trl.GRPOTrainer):
        """Samples a wrong answer, then a right one, then a closing word."""

        def _generate_single_turn(self, prompt_ids, *_, **__):
            texts = [tokenizer.decode(ids) for ids in prompt_ids]
            asked.extend(texts)
            replies = [self._reply(text) for text in texts]
            ids = [tokenizer(reply)["input_ids"] for reply in replies]
            return ids, None

        def _reply(self, text):
            answers = text.count("<tool_response>")
            task = int(text.partition("<|im_start|>user\n")[2].partition("<")[0])
            return ("Done.<|im_end|>", CALL % (task + 1), CALL % "?")[max(0, 2 - answers)]

    view = SingleAgentView(addition_env, agent="left", teammates=ScriptedActor(right_answer))
    trainer = Scripted(
        model,
        processing_class=tokenizer,
        train_dataset=view.dataset(),
        environment_factory=view.environment,
        args=trl.GRPOConfig(
            output_dir=str(tmp_path), max_steps=2, num_generations=2,
            per_device_train_batch_size=2, max_completion_length=1024, logging_steps=1,
            report_to="none", use_cpu=True, save_strategy="no",
        ),
    )  # fmt: skip
    trainer.train()
    logged = [each for each in trainer.state.log_history if "reward" in each]
    assert [each["reward"] for each in logged] == [1.0, 1.0]
    assert any("<tool_response>\nThe episode is over." in text for text in asked)
    assert '"name": "answer"' in asked[0]
