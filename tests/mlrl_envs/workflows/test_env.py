"""Environments of workflows: contract, routing, rewards, and equality with what they wrap."""

import copy

import pytest
from pettingzoo.test import api_test, parallel_api_test, parallel_seed_test

import mlrl_envs
from mlrl_envs.errors import InvalidActionError
from mlrl_envs.shell.aec import to_aec
from mlrl_envs.workflows import SHAPES
from tests.mlrl_envs.shell import card_game

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:pettingzoo")
MATH = {"split": "sample", "max_turns": 2}
OVER = [
    *(("mlrl/math-v2", {**MATH, "workflow": name}) for name in SHAPES),
    ("mlrl/math-v2", {**MATH, "workflow": {"shape": "critic", "rounds": 3, "only": ["solver"]}}),
    ("mlrl/math-v2", {**MATH, "workflow": "debate", "reward": "paper"}),
    ("mlrl/math-v2", {**MATH, "workflow": {"shape": "mixture", "pay": "own"}}),
    ("mlrl/kuhn-v0", {"split": "sample", "workflow": "reflection"}),
    ("mlrl/tictactoe-v0", {"split": "sample", "workflow": "pipeline"}),
    ("mlrl/public-goods-v0", {"split": "sample", "workflow": "discussion"}),
    ("mlrl/coder-tester-v1", {"split": "sample", "workflow": "planner-executor"}),
]
REVIEW = {
    "nodes": {
        "writer": {"plays": True},
        "critic": {"reads": ["writer"], "prompt": "{writer}\n\nEnd with APPROVED or REVISE."},
        "reviser": {"reads": ["writer", "critic"], "when": {"critic": "REVISE"}, "plays": True},
    }
}


@pytest.fixture(params=OVER, ids=lambda each: f"{each[0]} {each[1]['workflow']}")
def make_env(request):
    """Make a workflow over an environment."""
    env_id, options = request.param
    return lambda: mlrl_envs.make(env_id, **options)


def code(**options):
    """Return a workflow of three nodes over functions that one agent writes."""
    return mlrl_envs.make("mlrl/humaneval-v1", split="sample", num_aux=0, **options)


def play(env, write, seed=0):
    """Play an episode with a function of the node; return the results of its steps."""
    env.reset(seed=seed)
    results = []
    while env.agents:
        results.append(env.step({agent: write(agent) for agent in env.acting}))
    return results


def test_keeps_our_contract(make_env):
    mlrl_envs.check_env(make_env)


def test_passes_the_suites_of_pettingzoo(make_env):
    parallel_api_test(make_env(), num_cycles=12)
    parallel_seed_test(make_env, num_cycles=3)
    api_test(to_aec(make_env()), num_cycles=12)


def test_tasks_and_first_observations_are_those_of_the_wrapped_environment(make_env):
    env = make_env()
    twin = mlrl_envs.make(env.metadata["name"], **OVER_OPTIONS.get(env.metadata["name"], MATH))
    for seed in range(3):
        observations, infos = env.reset(seed=seed)
        first, of_twin = twin.reset(seed=seed)
        assert infos[env.agents[0]]["task_id"] == of_twin[twin.agents[0]]["task_id"]
        for name in env.acting:
            assert observations[name].startswith(first[env.family.graph.node(name).agent])


OVER_OPTIONS = {env_id: {"split": "sample"} for env_id, _ in OVER if env_id != "mlrl/math-v2"}


def test_the_answers_of_the_last_nodes_are_played_and_all_nodes_are_paid():
    env = mlrl_envs.make("mlrl/math-v2", workflow="planner-executor", **MATH)
    twin = mlrl_envs.make("mlrl/math-v2", **MATH)
    twin.reset(seed=3)
    right, _ = twin.reference_actions().values()
    first, last = play(env, lambda name: right if name == "solver_executor" else name, seed=3)[:2]
    _, rewards, *_, infos = twin.step({"solver": right, "verifier": "verifier_executor"})
    assert set(first[1].values()) == {0.0}
    assert last[1] == {name: rewards[name.split("_")[0]] for name in last[1]}
    assert rewards["solver"] > 0
    assert last[-1]["solver_planner"]["components"] == infos["solver"]["components"]
    assert last[-1]["verifier_executor"]["diagnostics"] == infos["verifier"]["diagnostics"]


def test_only_those_that_play_are_paid_if_asked_for():
    env = code(workflow={**REVIEW, "pay": "play"})
    env.reset(seed=0)
    reference = env.reference_actions()["writer"]
    *_, last = play(env, lambda name: "REVISE" if name == "critic" else reference)
    assert last[1] == pytest.approx({"writer": 1.0, "critic": 0.0, "reviser": 1.0})


def test_every_node_earns_what_its_own_answer_would_earn():
    env = mlrl_envs.make(
        "mlrl/math-v2", workflow={"shape": "critic", "only": ["solver"], "pay": "own"}, **MATH
    )
    twin = mlrl_envs.make("mlrl/math-v2", **MATH)
    twin.reset(seed=3)
    right, _ = twin.reference_actions().values()
    said = {"solver_writer": right, "verifier": "Answer: 1"}
    last = play(env, lambda name: said.get(name, "REVISE"), seed=3)[3]
    earned = {}
    for name in ("solver_writer", "solver_critic", "solver_reviser"):
        copied = copy.deepcopy(twin)
        actions = {"solver": said.get(name, "REVISE"), "verifier": "Answer: 1"}
        earned[name] = copied.step(actions)[1]["solver"]
    assert {name: last[1][name] for name in earned} == earned
    assert earned["solver_writer"] > earned["solver_reviser"]


@pytest.mark.parametrize("pay", ["all", "play", "own"])
def test_one_node_an_agent_earns_the_rewards_of_the_environment(pay):
    env = card_game.make()  # pays an agent while it waits, also before it has acted
    over = mlrl_envs.workflow(env, {"shape": "chain", "length": 1, "pay": pay})
    wanted = [result[1] for _, result in card_game.play(env)]
    found = [result[1] for _, result in card_game.play(over)]
    assert found == [{f"{a}_writer_1": paid for a, paid in each.items()} for each in wanted]
    assert any(paid == 0.1 for each in found for paid in each.values())


def test_a_reward_that_comes_later_is_that_of_the_nodes_that_wrote_in_the_last_turn_of_the_agent():
    drafter, other = {"agent": "player_0", "plays": True}, {"agent": "player_1"}
    reviser = {**drafter, "reads": ["drafter"], "when": {"drafter": "REVISE"}}
    nodes = {"drafter": drafter, "reviser": reviser, "other": other}
    moves = {"drafter": "<move>bet</move>", "other": "<move>fold</move>"}
    env = mlrl_envs.make("mlrl/kuhn-v0", split="sample", workflow={"nodes": nodes, "pay": "own"})
    assert play(env, moves.get)[-1][1] == {"drafter": 1.0, "reviser": 0.0, "other": -1.0}
    moves |= {"drafter": "REVISE", "reviser": "<move>bet</move>"}
    assert play(env, moves.get)[-1][1] == {"drafter": 1.0, "reviser": 1.0, "other": -1.0}


def test_an_answer_that_would_end_no_turn_earns_nothing_if_each_earns_its_own():
    inner = code(workflow=REVIEW, max_turns=1)
    env = mlrl_envs.workflow(inner, {"shape": "chain", "length": 2, "pay": "own"})
    said = {"critic_writer_1": "REVISE", "critic_writer_2": "APPROVED"}
    env.reset(seed=0)
    right = next(iter(env.reference_actions().values()))
    last = play(env, lambda name: said.get(name, right))[-1]
    assert last[1]["critic_writer_1"] == 0.0
    assert last[1]["critic_writer_2"] == last[1]["writer_writer_2"] == pytest.approx(1.0)


def test_nodes_read_their_predecessors_and_nobody_else():
    env = code(workflow=REVIEW, max_turns=1)
    env.reset(seed=0)
    assert env.acting == ("writer",)
    observations, *_ = env.step({"writer": "a secret draft"})
    assert env.acting == ("critic",)
    assert observations["critic"] == "a secret draft\n\nEnd with APPROVED or REVISE."
    assert "secret" not in observations["writer"] + observations["reviser"]
    observations, *_ = env.step({"critic": "REVISE"})
    assert env.acting == ("reviser",)
    assert "writer wrote:\na secret draft\n\ncritic wrote:\nREVISE" in observations["reviser"]
    assert "write the function" in observations["reviser"]


def test_an_approved_draft_is_played_at_once():
    env = code(workflow=REVIEW, max_turns=1)
    env.reset(seed=0)
    reference = env.reference_actions()["writer"]
    results = play(env, lambda name: reference if name == "writer" else "fine.\nApproved.")
    assert len(results) == 2
    assert results[-1][2] == dict.fromkeys(("writer", "critic", "reviser"), True)
    assert env.turns[-1].score.base.actions == {"main": reference}


def test_empty_answers_are_read_and_played_as_such():
    env = mlrl_envs.make("mlrl/math-v2", workflow="debate", **MATH)
    results = play(env, lambda _: "")
    assert len(results) == env.max_turns
    assert {value for result in results for value in result[1].values()} == {0.0}
    assert all(results[-1][3].values())


def test_secrets_of_players_stay_with_their_nodes():
    env = mlrl_envs.make("mlrl/kuhn-v0", workflow="reflection")
    twin = mlrl_envs.make("mlrl/kuhn-v0")
    observations, _ = env.reset(seed=1)
    shown, _ = twin.reset(seed=1)
    own = {name: observations[f"{name}_writer"].splitlines() for name in twin.agents}
    other = {name: set(shown[name].splitlines()) for name in twin.agents}
    for name, rival in (twin.agents, twin.agents[::-1]):
        assert set(own[name]) <= other[name] | {"", "Wait for your next turn."}
        assert not (other[rival] - other[name]) & set(own[name])


def test_a_missing_node_is_an_error_of_the_caller():
    env = mlrl_envs.make("mlrl/math-v2", workflow="debate", **MATH)
    env.reset(seed=0)
    with pytest.raises(InvalidActionError, match="no action for agent 'solver_debater_1'"):
        env.step({})


def test_copies_are_stepped_as_one_batch():
    vec = mlrl_envs.make_vec("mlrl/math-v2", 3, workflow="vote", **MATH)
    vec.reset(seed=0)
    assert len({env.batch_key for env in vec.envs}) == 1
    actions = dict.fromkeys(vec.acting[0], "7")
    _, rewards, *_ = vec.step([actions] * 3)
    env = mlrl_envs.make("mlrl/math-v2", workflow="vote", **MATH)
    env.reset(seed=1)
    assert env.step(actions)[1] == rewards[1]


def test_a_batch_in_different_steps_is_scored_like_one_by_one():
    env = mlrl_envs.make("mlrl/math-v2", workflow="reflection", **MATH)
    env.reset(seed=0)
    later = copy.deepcopy(env)
    later.step(dict.fromkeys(later.acting, "5"))
    alone = [copy.deepcopy(each).step(dict.fromkeys(env.acting, "7")) for each in (env, later)]
    together = mlrl_envs.step_many([env, later], [dict.fromkeys(env.acting, "7")] * 2)
    assert together == alone


def test_fingerprints_tell_graphs_apart_and_keep_those_of_plain_environments():
    def scorer(**options):
        return mlrl_envs.fingerprint(mlrl_envs.make("mlrl/math-v2", **MATH, **options))["scorer"]

    found = [scorer(), scorer(workflow="vote"), scorer(workflow={"shape": "vote", "voters": 4})]
    assert len(set(found)) == 3
    assert scorer(workflow={"shape": "vote", "voters": 3}) == found[1]


def test_workflows_nest():
    inner = mlrl_envs.make("mlrl/math-v2", workflow="pipeline", **MATH)
    env = mlrl_envs.workflow(inner, "reflection")
    mlrl_envs.check_env(lambda: mlrl_envs.workflow(inner, "reflection"))
    assert env.possible_agents == ["solver_writer", "verifier_writer"]
