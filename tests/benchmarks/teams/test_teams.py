"""Teams and one agent on the same tasks: equal games, equal work, paired comparisons."""

import dataclasses
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test

import mlrl_envs
import mlrl_learners
from benchmarks.games.model import word_tokenizer
from benchmarks.teams import plans, tasks
from benchmarks.teams.baselines import BASELINES
from benchmarks.teams.one_agent import AGENT, ENV_ID, answer_of
from benchmarks.teams.play import ONE_AGENT, TEAM, write_play
from benchmarks.teams.scripts import FROM_REFERENCE, scripted_actions
from benchmarks.teams.tester_scripts import TESTER_SCRIPTS
from benchmarks.teams.tool_scripts import TOOL_SCRIPTS
from mlrl_learners.runs.demonstrations import read_demonstrations

TINY = {
    name: dataclasses.replace(task, games=4, imitation=1, updates=3, episodes=8, eval_tasks=2)
    for name, task in tasks.TASKS.items()
}


def make(name, **options):
    task = tasks.TASKS[name]
    one = mlrl_envs.make(ENV_ID, team_env=task.env_id, split="train", **task.env, **options)
    return one, mlrl_envs.make(task.env_id, split="train", **task.env, **options)


@pytest.mark.parametrize("name", tasks.TASKS)
def test_the_one_agent_keeps_the_contract(name):
    parallel_api_test(make(name)[0], num_cycles=20)
    mlrl_envs.check_env(lambda **options: make(name, **options)[0])


@pytest.mark.parametrize("name", tasks.TASKS)
def test_the_same_answers_earn_the_same(name):
    one, team = make(name)
    for seed in range(5):
        one.reset(seed=seed, options={"task_index": seed})
        team.reset(seed=seed, options={"task_index": seed})
        while team.agents:
            script = tasks.TASKS[name].scripts[seed % 2]
            actions = scripted_actions(team, script, [seed] * len(team.acting))
            _, paid, *_ = one.step({AGENT: answer_of(list(actions.values()))})
            rewards = team.step(actions)[1]
            assert paid[AGENT] == pytest.approx(sum(rewards.values()) / len(rewards))
        assert one.agents == []


def earned(env, script, task):
    env.reset(seed=task, options={"task_index": task})
    return env.step(scripted_actions(env, script, [0] * len(env.acting)))[1]["main"]


def test_programs_that_share_a_function_earn_more_than_its_author_alone():
    env = make("functions")[1]
    alone, together = ([earned(env, s, n) for n in range(8)] for s in ("reference", "together"))
    assert all(ours >= theirs for ours, theirs in zip(together, alone, strict=True))
    assert sum(together) > 1.5 * sum(alone)


def test_questions_about_cargo_are_answered_from_what_agents_find_not_by_guesses():
    env = make("tools")[1]
    earned = {"careful": [], "hasty": []}
    for script, returns in earned.items():
        for task in range(8):
            env.reset(seed=0, options={"task_index": task})
            returns.append(0.0)
            while env.agents:
                returns[-1] += env.step(scripted_actions(env, script, [0, 0]))[1]["solver"]
    assert min(earned["careful"]) > 0.9
    assert max(earned["hasty"]) == 0.0


def test_a_careless_coder_fails_tests_that_a_thorough_one_passes():
    env = make("coder-tester")[1]
    paid = {script: [] for script in TESTER_SCRIPTS}
    for script, number in itertools.product(paid, range(12)):
        env.reset(seed=0, options={"task_index": number})
        coder = env.step(scripted_actions(env, script, [number]))[1]["coder"]
        tester = env.step(scripted_actions(env, script, [number]))[1]["tester"]
        paid[script].append((coder, tester))
    thorough, careless = (list(zip(*paid[name], strict=True)) for name in ("thorough", "careless"))
    assert min(thorough[0]) == pytest.approx(1.0)
    assert max(careless[0]) < 0.9
    assert sum(careless[1]) < sum(thorough[1])


def baselines():
    return [(name, script) for name, task in tasks.TASKS.items()
            for script in task.references if script in BASELINES]  # fmt: skip


@pytest.mark.parametrize(("name", "script"), baselines())
def test_a_baseline_gives_no_illegal_answer_and_earns_something(name, script):
    env, earned = make(name)[1], []
    for number in range(5):
        env.reset(seed=number, options={"task_index": number})
        while env.agents:
            actions = scripted_actions(env, script, [number] * len(env.acting))
            earned += env.step(actions)[1].values()
    assert min(earned) >= 0.0
    assert max(earned) > 0.0


def test_the_executor_of_a_puzzle_finds_most_goals_alone():
    env, solved = make("puzzle")[1], 0
    for number in range(40):
        env.reset(seed=number, options={"task_index": number})
        while env.agents:
            *_, infos = env.step(scripted_actions(env, "alone", [100 * number + len(env.turns)]))
        solved += infos["executor"]["solved"]
    assert solved >= 30


@given(texts=st.dictionaries(st.sampled_from(["researcher", "solver"]), st.text(), min_size=2))
def test_scripts_with_tools_answer_for_every_agent_whatever_they_read(texts):
    for script in TOOL_SCRIPTS.values():
        assert script(texts).keys() == texts.keys()


@given(reference=st.dictionaries(st.sampled_from(["main", "aux"]), st.text(), min_size=2))
def test_a_script_answers_for_every_agent_whatever_the_reference(reference):
    for change in FROM_REFERENCE.values():
        assert change(reference).keys() == reference.keys()


@pytest.mark.parametrize("name", ["functions", "strbuild", "coder-tester", "tools"])
def test_the_model_of_a_text_task_writes_exactly_what_it_imitates(name, tmp_path):
    write_play(TINY[name], tmp_path)
    shown = [each for file in (TEAM, ONE_AGENT) for each in read_demonstrations(tmp_path / file)]
    answers = [each.actions[each.agent] for each in shown]
    tokenizer = word_tokenizer(answers, tasks.TASKS[name].unread, digits=tasks.TASKS[name].digits)
    assert [tokenizer.decode(tokenizer(each)["input_ids"]) for each in answers] == answers


@pytest.mark.parametrize("text", ["", "|", "||||||||", "<move>1</move>", "a|b\n|<move>|"])
def test_answers_that_are_missing_or_too_many_are_scored(text):
    one, _ = make("network")
    one.reset(seed=0)
    while one.agents:
        _, rewards, *_ = one.step({AGENT: text})
        assert one.reward_range[0] <= rewards[AGENT] <= one.reward_range[1]


@pytest.mark.parametrize("name", tasks.TASKS)
def test_both_imitate_the_same_games(name, tmp_path):
    write_play(TINY[name], tmp_path)
    team, one = (read_demonstrations(tmp_path / file) for file in (TEAM, ONE_AGENT))
    assert " | ".join(each.actions[each.agent] for each in team).split(" | ") == (
        " | ".join(each.actions[AGENT] for each in one).split(" | ")
    )
    assert all(team[0].observation in each.observation for each in one[:1])


@pytest.mark.parametrize(("team", "one"), [("magrpo", "one-magrpo"), ("ippo", "ppo")])
def test_the_learners_of_a_pair_are_equal_with_all_defaults(team, one):
    whole, alone = (
        dataclasses.asdict(
            mlrl_learners.make(
                plans.METHODS[name].learner,
                agents=["a", "b"] if plans.METHODS[name].is_team else [AGENT],
                model="tiny-random",
                **plans.run_config(
                    tasks.TASKS["network"], plans.METHODS[name], "m", 0
                ).learner.options,
            ).config
        )
        for name in (team, one)
    )
    for config in (whole, alone):
        config["team"].pop("share_weights")
        config["sampling"].pop("max_new_tokens")
    assert whole == alone


@pytest.mark.parametrize(("team", "one"), plans.PAIRS)
@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_pair_plays_as_many_episodes_with_the_same_options(name, team, one):
    task = tasks.TASKS[name]
    whole, alone = (plans.run_config(task, plans.METHODS[each], "m", 0) for each in (team, one))
    assert whole.train == alone.train
    theirs, ours = dict(whole.learner.options), dict(alone.learner.options)
    assert theirs.pop("team") == {"share_weights": True}
    tokens = [options.pop("sampling")["max_new_tokens"] for options in (theirs, ours)]
    assert tokens[1] == task.answers * (tokens[0] + 1)
    assert theirs == ours
