import pytest

from mlrl_envs.errors import ContractError
from mlrl_learners.actors import (
    EndpointActor,
    RandomActor,
    ReferenceActor,
    SingleActor,
    WorkflowActor,
)
from mlrl_learners.cli import main
from mlrl_learners.cli.actors import SUMMARIES, make_actor
from mlrl_learners.errors import ConfigError, UnknownNameError

AGENTS = ["aux", "main"]
SERVED = "endpoint:me/my-model@v2@http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("random", RandomActor),
        ("reference", ReferenceActor),
        ("single:random", SingleActor),
        ("concatenation:random", RandomActor),
        ("pipeline:random", WorkflowActor),
        ("planner-executor:random", WorkflowActor),
        (SERVED, EndpointActor),
    ],
)
def test_a_word_is_an_actor(word, kind):
    assert isinstance(make_actor(word, AGENTS), kind)


def test_words_nest():
    actor = make_actor(f"discussion:pipeline:{SERVED}", AGENTS)
    assert isinstance(actor, WorkflowActor)
    assert isinstance(actor.base, WorkflowActor)
    assert isinstance(actor.base.base, EndpointActor)


def test_an_endpoint_word_holds_model_and_address():
    actor = make_actor(SERVED, AGENTS, seed=4, options={"max_tokens": 9})
    endpoint = actor.endpoint
    assert (endpoint.model, endpoint.base_url) == ("me/my-model@v2", "http://127.0.0.1:8000/v1")
    assert (endpoint.max_tokens, endpoint.seed, endpoint.temperature) == (9, 4, 0.8)


def test_a_model_may_be_wrapped():
    actor = make_actor("single:tiny-random", AGENTS, options={"sampling": {"max_new_tokens": 4}})
    (answers,) = actor.act([dict.fromkeys(AGENTS, "hello")])
    assert answers["main"][0].cost.completion_tokens in range(1, 5)
    assert answers["aux"][0].text == ""


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("refrence", UnknownNameError, "did you mean 'reference'"),
        ("pipelin:random", UnknownNameError, "did you mean 'pipeline'"),
        ("endpiont:m@http://x/v1", UnknownNameError, "did you mean 'endpoint'"),
        ("quarrel:random", UnknownNameError, "known: chain, concatenation, critic, debate"),
        ("pipeline:randm", UnknownNameError, "did you mean 'random'"),
        ("pipeline", ConfigError, "write pipeline:ACTOR"),
        ("single:", ConfigError, "write single:ACTOR"),
        ("endpoint", ConfigError, "endpoint:MODEL@URL"),
        ("endpoint:http://x/v1", ConfigError, "endpoint:MODEL@URL"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(word, error, message):
    with pytest.raises(error, match=message) as caught:
        make_actor(word, AGENTS)
    assert "\n" not in str(caught.value)


def test_a_wrong_option_of_an_endpoint_is_named():
    with pytest.raises(UnknownNameError, match="did you mean 'max_tokens'"):
        make_actor(SERVED, AGENTS, options={"max_new_tokens": 9})


@pytest.mark.parametrize("name", ["agents", "model", "name", "seed"])
def test_what_the_command_sets_is_no_option_of_a_model(name):
    with pytest.raises(ConfigError, match=f"{name} is set by the run"):
        make_actor("tiny-random", AGENTS, options={name: 1})


def test_a_class_of_a_file_must_make_actors(tmp_path):
    (tmp_path / "silent.py").write_text("class Silent: ...\n")
    with pytest.raises(ConfigError, match="must make an actor with a method act"):
        make_actor(f"{tmp_path}/silent.py:Silent", AGENTS)


def test_a_function_of_a_file_must_return_a_text(tmp_path):
    (tmp_path / "silent.py").write_text("def count(agent, observation):\n    return 5\n")
    actor = make_actor(f"{tmp_path}/silent.py:count", AGENTS)
    with pytest.raises(
        ContractError, match=r"silent\.py:count' must return a str, got 5 for 'aux'"
    ):
        actor.act([dict.fromkeys(AGENTS, "hello")])


def test_what_the_command_sets_is_no_option_of_a_class(tmp_path):
    (tmp_path / "silent.py").write_text("class Seeded:\n    def __init__(self, seed): ...\n")
    with pytest.raises(ConfigError, match="seed is set by the command"):
        make_actor(f"{tmp_path}/silent.py:Seeded", AGENTS, options={"seed": 1})


def test_list_shows_every_word_with_a_line(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for word, summary in SUMMARIES.items():
        assert any(line.startswith(f"  {word} ") and line.endswith(summary) for line in lines)


@pytest.mark.parametrize("word", ["reference", "single:reference", "discussion:reference"])
def test_the_reference_is_evaluated_where_there_is_one(word, capsys):
    words = ["evaluate", "mlrl/humaneval-v1", "--split", "sample", "--tasks", "2", "--actor", word]
    assert main(words) == 0
    assert "2 of 2 tasks" in capsys.readouterr().out


def test_an_evaluation_without_any_reference_says_so_in_one_line(capsys):
    assert main(["evaluate", "mlrl/story-v1", "--actor", "reference", "--tasks", "1"]) != 0
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert "has no reference actions; choose another actor" in error


@pytest.mark.usefixtures("student")
def test_options_reach_the_learner_of_a_run(addition_env, tmp_path, capsys):
    run_dir, out = tmp_path / "run", tmp_path / "episodes.jsonl"
    config = tmp_path / "student.yaml"
    config.write_text(f"env: {{id: {addition_env}}}\nlearner: {{name: student}}\n")
    assert main(["train", str(config), "--run-dir", str(run_dir), "--train.iterations", "1"]) == 0
    assert make_actor(str(run_dir), AGENTS, options={"patience": 9}).patience == 9
    words = ["collect", addition_env, "--actor", str(run_dir), "--out", str(out)]
    assert main([*words, "--learner.patiense", "9"]) == 2
    assert "did you mean 'patience'" in capsys.readouterr().err
    assert main([*words, "--learner.model", "other"]) == 2
    assert main(["play", addition_env, "--actor", str(run_dir), "--learner.patiense", "9"]) == 2
