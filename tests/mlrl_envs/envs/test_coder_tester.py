"""The coder and the tester on the sample, with real programs."""

import copy
import math
import pickle

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test, seed_test
from pettingzoo.test.state_test import state_test

import mlrl_envs
from mlrl_envs.envs.coder_tester import parallel_env
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.testing import JUNK_TEXTS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")


def make(**options):
    return parallel_env(split="sample", **options)


def block(code):
    return f"```python\n{code}\n```"


@pytest.fixture
def balance():
    """The problem of `balance`, the lowest height on a walk, in an environment."""
    env = make()
    (task,) = (task for task in env.family.tasks if task.entry_point == "balance")
    env.reset(options={"task_id": task.task_id})
    return env


RIGHT = """def balance(moves):
    height = lowest = 0
    for move in moves:
        height += (move == "u") - (move == "d")
        lowest = min(lowest, height)
    return lowest"""
WRONG = "def balance(moves):\n    return moves.count('u') - moves.count('d')"
GOOD_TESTS = """assert balance("dd") == -2
assert balance("du") == -1
assert balance("xd") == -1
assert balance("uddd") == -2
assert balance("dddu") == -3"""


def test_agents_take_turns_and_the_coder_begins(balance):
    asked = []
    while balance.agents:
        asked += balance.acting
        balance.step(dict.fromkeys(balance.acting, ""))
    assert asked == ["coder", "tester", "coder", "tester"]


# Hidden tests of MBPP are not all on literals, so that the reference kills fewer mutants.
@pytest.mark.parametrize(
    ("dataset", "least"), [("humaneval", 0.99), ("mbpp", 0.6), ("functions", 0.9)]
)
def test_references_solve_every_task(dataset, least):
    env, paid = make(dataset=dataset), []
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        earned = {"coder": 0.0, "tester": 0.0}
        while env.agents:
            _, rewards, terminations, _, infos = env.step(env.reference_actions())
            for agent, reward in rewards.items():
                earned[agent] += reward
        assert all(terminations.values())
        assert infos["tester"]["solved"]
        assert abs(earned["coder"] - 1.0) < 1e-9
        paid.append(earned["tester"])
    assert math.fsum(paid) / len(paid) >= least


def test_functions_are_those_of_two_programmers():
    options = {"topics": ["text"], "levels": [1], "task_seed": 3, "num_tasks": 4}
    env = parallel_env(dataset="functions", split="eval", **options)
    same = mlrl_envs.make("mlrl/functions-v0", split="eval", **options)
    assert env.family.tasks == same.family.tasks


def test_right_code_earns_one_and_wrong_code_less(balance):
    wrong = copy.deepcopy(balance).step({"coder": block(WRONG)})[1]
    right = balance.step({"coder": block(RIGHT)})[1]
    assert 0.1 <= wrong["coder"] < 0.9
    assert right == {"coder": pytest.approx(1.0), "tester": 0.0}


def test_good_tests_kill_mutants_and_wrong_tests_cost(balance):
    balance.step({"coder": block(WRONG)})

    def pay(tests):
        return copy.deepcopy(balance).step({"tester": block(tests)})[1]["tester"]

    good = pay(GOOD_TESTS)
    assert good > 0.8
    mixed = pay(GOOD_TESTS.replace("-3", "7"))
    assert 0.1 < mixed < good
    assert pay("assert balance('u') == 1") == 0.0
    assert pay("") == pay("assert True") == 0.0


def test_copies_of_the_examples_kill_no_mutant(balance):
    balance.step({"coder": block(WRONG)})
    tests = "\n".join(balance.task.public_tests)
    _, rewards, *_, infos = balance.step({"tester": block(tests)})
    assert infos["tester"]["components"]["kills"] == 0.0
    assert rewards["tester"] == pytest.approx(0.1)


@pytest.mark.parametrize("dataset", ["humaneval", "mbpp", "functions"])
def test_copies_of_the_examples_kill_no_mutant_of_any_task(dataset):
    env = make(dataset=dataset)
    for index in range(env.num_tasks):
        env.reset(options={"task_index": index})
        env.step({"coder": ""})
        _, _, _, _, infos = env.step({"tester": block("\n".join(env.task.public_tests))})
        assert infos["tester"]["components"]["kills"] == 0.0


def test_an_example_in_another_form_kills_no_mutant(balance):
    balance.step({"coder": block(WRONG)})
    name, test = balance.task.entry_point, balance.task.public_tests[0]
    other = test.replace(f"{name}(", f"{name}(moves=")
    assert other != test
    _, _, _, _, infos = balance.step({"tester": block(other)})
    assert infos["tester"]["components"]["valid"] == pytest.approx(0.1)
    assert infos["tester"]["components"]["kills"] == 0.0


def test_each_reads_the_other_with_results_if_broadcast():
    for mode, seen in (("broadcast", True), ("none", False)):
        env = make(communication=mode)
        env.reset(options={"task_index": 0})
        name = env.task.entry_point
        code = block(f"def {name}(*args):\n    return 'mine'")
        texts, *_ = env.step({"coder": code})
        assert ("'mine'" in texts["tester"].split("Results")[0]) == seen
        assert texts["coder"].endswith("Wait for your next turn.")
        texts, *_ = env.step({"tester": block(f"assert {name}(77) == 78")})
        assert (f"assert {name}(77) == 78\n```" in texts["coder"]) == seen
        assert "tests of the tester: 0 of 1 pass" in texts["coder"]
        assert texts["tester"].endswith("Wait for your next turn.")


def test_solved_is_told_only_after_the_tester_has_read_the_code(balance):
    texts, _, terminations, _, infos = balance.step({"coder": block(RIGHT)})
    assert not any(terminations.values())
    assert not infos["coder"]["solved"]
    assert "hidden tests" not in texts["tester"]
    texts, _, terminations, _, infos = balance.step({"tester": ""})
    assert all(terminations.values())
    assert infos["tester"]["solved"]


def test_only_gains_are_paid(balance):
    first = balance.step({"coder": block(WRONG)})[1]["coder"]
    tested = balance.step({"tester": block(GOOD_TESTS)})[1]["tester"]
    second = balance.step({"coder": block(RIGHT)})[1]["coder"]
    again = balance.step({"tester": block(GOOD_TESTS)})[1]["tester"]
    assert first + second == pytest.approx(1.0)
    assert tested > 0
    assert again == 0.0


def test_team_reward_pays_both_half():
    own, team = make(), make(reward="team")
    for index in range(2):
        sums = []
        for env in (own, team):
            env.reset(options={"task_index": index})
            total = dict.fromkeys(env.possible_agents, 0.0)
            name = env.task.entry_point
            for answer in (
                {"coder": block(f"def {name}(*args):\n    return 0")},
                env.family.reference_at(env.task, (None,)),
                env.family.reference_at(env.task, ()),
                {"tester": ""},
            ):
                for agent, reward in env.step(answer)[1].items():
                    total[agent] += reward
            sums.append(total)
        assert sums[1]["coder"] == pytest.approx(sums[1]["tester"])
        assert sums[1]["coder"] == pytest.approx(math.fsum(sums[0].values()) / 2)


def test_hidden_tests_and_the_solution_are_in_no_observation(balance):
    hidden = [line.strip() for line in balance.task.hidden_tests.splitlines() if "==" in line]
    texts, _ = balance.reset(seed=3)
    seen = list(texts.values())
    while balance.agents:
        texts, *_, infos = balance.step(dict.fromkeys(balance.acting, "nothing"))
        seen += [*texts.values(), str(infos)]
    shown = set(balance.task.public_tests)
    for line in hidden:
        call = line.removeprefix("assert ").replace("candidate", balance.task.entry_point)
        assert f"assert {call}" in shown or not any(call in text for text in seen)


@pytest.mark.parametrize("text", [text[:20_000] for text in JUNK_TEXTS])
def test_hostile_text_raises_nothing_and_earns_nothing(balance, text):
    while balance.agents:
        _, rewards, *_ = balance.step(dict.fromkeys(balance.acting, text))
        assert all(reward == 0.0 for reward in rewards.values())


def test_copies_and_batches_step_alike(balance):
    balance.step({"coder": block(WRONG)})
    forks = [copy.deepcopy(balance), pickle.loads(pickle.dumps(balance))]
    results = mlrl_envs.step_many(forks, [{"tester": block(GOOD_TESTS)}] * 2)
    assert results[0] == results[1] == balance.step({"tester": block(GOOD_TESTS)})


@pytest.mark.parametrize(
    "options", [{}, {"reward": "team", "max_turns": 3}, {"dataset": "functions", "levels": [1]}]
)
def test_keeps_our_contract(options):
    mlrl_envs.check_env(lambda: make(**options))


def test_passes_pettingzoos_suites():
    parallel_api_test(make(), num_cycles=10)
    parallel_seed_test(make, num_cycles=5)
    api_test(mlrl_envs.to_aec(make()), num_cycles=10)
    seed_test(lambda: mlrl_envs.to_aec(make()), num_cycles=5)
    state_test(mlrl_envs.to_aec(make()), make())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dataset": "apps"}, "dataset"),
        ({"levels": [1]}, "levels is of functions made from a seed: pass dataset='functions'"),
        ({"num_tasks": 9, "dataset": "mbpp"}, "num_tasks is of functions made from a seed"),
        ({"dataset": "functions", "levels": [4]}, "levels must be some of"),
        ({"dataset": "functions", "num_tasks": 0}, "num_tasks must be an int from 1"),
        ({"dataset": "functions", "data_path": "a.jsonl"}, "have no data_path: leave it out"),
        ({"max_turns": 0}, "max_turns must be at least 1, got 0"),
        ({"num_tests": 0}, "num_tests must be an int from 1 to 50, got 0"),
        ({"num_mutants": 51}, "num_mutants must be an int from 1 to 50, got 51"),
        ({"reward": "paper"}, "reward"),
    ],
)
def test_senseless_options_are_refused_in_one_line(options, message):
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message) as error:
        make(**options)
    assert "\n" not in str(error.value)
