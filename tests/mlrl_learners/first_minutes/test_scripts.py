"""Stumbles 2 and 4: what a script defines or registers works on the command line and in calls."""

import functools
import sys

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners import ScriptedActor
from mlrl_learners.config.run import load_config

pytestmark = pytest.mark.usefixtures("here")


@pytest.mark.parametrize("env", ["me.py:Guess", "me.py:me/guess-v0", "me:me/guess-v0", "me:Guess"])
def test_play_takes_an_environment_of_a_script(env, type_json, here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    episode = type_json(f"play {env} --actor me.py:says_yes")
    assert episode["returns"] == {"a": 1.0, "b": 1.0}


def test_an_import_registers_an_environment(type_in, type_json):
    status, _, err = type_in("play me/guess-v0")
    assert (status, "unknown environment 'me/guess-v0'" in err) == (2, True)
    assert type_json("play me/guess-v0 --import me.py")["env_id"] == "me/guess-v0"


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("me.py:Gues", "unknown name in me.py: 'Gues'; did you mean 'Guess'?"),
        ("me.py", "'me.py' is a file; name what it makes: me.py:NAME"),
        ("mee.py:Guess", "did you mean '{here}/me.py'?"),
        ("nowhere_at_all:Guess", "there is no module 'nowhere_at_all'"),
        ("bad.py:Guess", "imported: SyntaxError: invalid syntax (bad.py, line 1)\n"),
        ("poor.py:Guess", "poor.py cannot be imported: ModuleNotFoundError: No module named 'poo'"),
    ],
)
def test_a_mistake_in_a_reference_is_one_line(word, message, type_in, here):
    (here / "bad.py").write_text("def Guess(:\n")
    (here / "poor.py").write_text("import poo\n")
    status, out, err = type_in(f"play {word}")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message.format(here=here) in err


def test_a_run_remembers_its_script_from_any_folder(type_in, type_json, here, monkeypatch):
    words = "--learner.name my_learner.py:MyLearner --learner.replies [yes,no]"
    (here / "guess.yaml").write_text("env: {id: me/guess-v0}\ntrain: {iterations: 6}\n")
    assert type_in(f"train guess.yaml --run-dir runs/a --import me.py {words}")[0] == 0
    config = load_config(here / "runs" / "a" / "config.yaml")
    assert config.code.imports == [str(here / "me.py")]
    assert config.learner.name == f"{here / 'my_learner.py'}:MyLearner"
    (here / "elsewhere").mkdir()
    monkeypatch.chdir(here / "elsewhere")
    forget("me", "my_learner")
    assert type_json("evaluate ../runs/a --greedy --tasks 2")["mean_return"] == 1.0
    result = type_json("train --run-dir ../runs/a --resume --train.iterations 7")
    assert result["iterations"] == 7


def test_a_run_names_an_environment_by_its_file(type_in, type_json, here, monkeypatch):
    (here / "guess.yaml").write_text(
        "env: {id: me.py:Guess}\n"
        "learner: {name: my_learner.py:MyLearner, options: {replies: ['yes', 'no']}}\n"
        "train: {iterations: 6, eval_every: 3}\n"
    )
    assert type_in("train guess.yaml --run-dir runs/a")[0] == 0
    monkeypatch.chdir(here / "runs")
    assert type_json("evaluate a --greedy")["mean_return"] == 1.0


def test_train_and_evaluate_take_an_environment_or_its_class(here, type_json):
    module = mlrl_envs.registry["me.py:Guess"].load()
    learner = mlrl_learners.make("my_learner.py:MyLearner", agents=["a", "b"], replies=["yes"])
    for number, env in enumerate((module, module(), functools.partial(module))):
        run_dir = here / "runs" / str(number)
        mlrl_learners.train(env=env, learner=learner, iterations=1, run_dir=run_dir, progress=False)
        assert mlrl_learners.evaluate(env=env, actor=learner).mean_return == 1.0
    assert type_json("evaluate runs/0")["mean_return"] == 1.0


def test_train_takes_one_environment():
    actor = ScriptedActor(lambda agent, text: "")
    for given in ({}, {"env_id": "me.py:Guess", "env": "me.py:Guess"}):
        with pytest.raises(ValueError, match="give env_id, the id of an environment, or env"):
            mlrl_learners.evaluate(actor=actor, **given)


def test_the_same_factory_may_be_registered_twice(here, monkeypatch):
    monkeypatch.syspath_prepend(here)
    mlrl_envs.registry["me:me/guess-v0"]
    mlrl_envs.register("me/guess-v0", "me:Guess")
    mlrl_envs.register("me/guess-v0", sys.modules["me"].Guess)
    with pytest.raises(ValueError, match="taken by"):
        mlrl_envs.register("me/guess-v0", "me:Other")


def test_a_script_plays_a_suite(here, type_json):
    (here / "mine.yaml").write_text(
        "{name: mine, version: 0, summary: mine, seeds: [0], budget: {turns: null}, "
        "entries: [{env: 'me.py:Guess', tasks: 2}]}"
    )
    result = type_json("bench run --suite mine.yaml --actor me.py:says_yes --run-dir runs/b")
    assert result["overall"]["mean"] == 1.0


def forget(*names):
    for name in names:
        sys.modules.pop(name, None)
    mlrl_envs.registry._specs.pop("me/guess-v0", None)
