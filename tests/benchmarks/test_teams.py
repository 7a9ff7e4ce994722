"""Teams and one agent on the same tasks: equal games, equal work, paired comparisons."""

import dataclasses
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pettingzoo.test import parallel_api_test

import mlrl_envs
import mlrl_learners
from benchmarks.games.model import word_tokenizer
from benchmarks.teams import __main__ as command
from benchmarks.teams import ablations, plans, published, results, tasks
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


def runs_of(method, gap):
    return [
        {
            "task": "network", "method": method, "seed": seed, "tokens": 1000, "minutes": 2.0,
            "held_out": {"0": 0.25, "60": 0.5 + gap}, "returns": [0.25 + gap, 0.75 + gap] * 20,
        }
        for seed in (0, 1)
    ]  # fmt: skip


def test_differences_are_paired_over_tasks_and_seeds():
    table = results.comparison_table([*runs_of("ippo", 0.1), *runs_of("ppo", 0.0)])
    row = table.splitlines()[-1]
    assert row.startswith("| network | `ippo`, `ppo` | 0.60 | 0.50 | +0.100 [+0.100, +0.100] |")
    assert "| +0.10, +0.10 | 1.00 | 0.000" in row
    assert len(results.comparison_table(runs_of("ippo", 0.1)).splitlines()) == 2


def test_a_change_is_relative_to_imitation():
    table = results.learning_table(runs_of("ippo", 0.1), {"network": {"random": 0.4}})
    assert "| 2 | 0.25 → 0.60 | +0.35 ± 0.00 | 0.60, 0.60 | 1,000 | 2.0 |" in table


def test_the_page_has_the_tables_of_the_stored_runs():
    stored = json.loads(command.RESULTS.read_text("utf-8"))
    page = command.PAGE.read_text("utf-8")
    assert results.learning_table(stored["runs"], stored["references"]) in page
    assert results.comparison_table(stored["runs"]) in page


def test_later_runs_are_added_to_the_published_ones(tmp_path, monkeypatch):
    file, names = tmp_path / "results.json", list(plans.METHODS)
    first, later = runs_of("magrpo", 0.0), [*runs_of("ippo", 0.1), runs_of("magrpo", 0.2)[1]]
    assert published.published_with(first, file, names) == first
    published.write_published(first, file)
    both = published.published_with(later, file, names)
    assert both == [first[0], later[2], *later[:2]]
    monkeypatch.setattr(published, "TASKS", TINY)  # the task is learnt in another way
    assert published.outdated(file) == ["network"]
    assert published.published_with(later[:2], file, names) == later[:2]


def test_runs_of_a_change_that_is_defined_in_another_way_are_dropped(tmp_path):
    file, changes = tmp_path / "ablations.json", dict(ablations.CHANGES)
    runs = [*runs_of("magrpo", 0.0), *runs_of("chain", 0.1), *runs_of("lag-1", 0.1)]
    written = {name: dataclasses.asdict(changes[name]) for name in ("chain", "lag-1")}
    published.write_published(runs, file, changes=written)
    names = ["magrpo", *changes]
    assert published.published_with([], file, names, changes) == runs
    changes["chain"] = changes["lag-1"]
    assert published.outdated(file, changes) == ["chain"]
    assert published.published_with([], file, names, changes) == [*runs[:2], *runs[4:]]


def test_the_stored_runs_stay_if_a_folder_has_none_of_them():
    for module, changes in ((command, None), (ablations, ablations.CHANGES)):
        stored = json.loads(module.RESULTS.read_text("utf-8"))
        names = dict.fromkeys([*plans.METHODS, *ablations.CHANGES])
        runs = published.published_with([], module.RESULTS, list(names), changes)
        assert sorted(runs, key=str) == sorted(stored["runs"], key=str)


@pytest.mark.parametrize("name", tasks.TASKS)
@pytest.mark.parametrize("change", ablations.CHANGES)
def test_a_change_is_a_configuration_at_as_many_episodes(change, name):
    changed, base = (
        plans.run_config(tasks.TASKS[name], method, "m", 0)
        for method in (ablations.CHANGES[change], plans.METHODS[ablations.BASE])
    )
    assert changed != base
    assert changed.train == base.train
    groups = [config.learner.options["group"] for config in (changed, base)]
    assert len({group["size"] * group["rollouts"] for group in groups}) == 1


@pytest.mark.parametrize("change", ablations.CHANGES)
def test_the_options_of_a_change_are_accepted(change):
    options = plans.run_config(tasks.TASKS["puzzle"], ablations.CHANGES[change], "m", 0).learner
    mlrl_learners.make("magrpo", agents=["a", "b"], model="tiny-random", **options.options)


def test_changes_are_compared_with_the_base_seed_by_seed():
    runs = [*runs_of("magrpo", 0.0), *runs_of("lag-1", 0.1), runs_of("chain", 0.2)[0]]
    lag, chain = ablations.ablation_table(runs).splitlines()[-1:1:-1]
    assert lag.startswith(f"| network | {ablations.CHANGES['lag-1'].label} | 2 | 0.50 | 0.60 ")
    assert "| +0.100 [+0.100, +0.100] | +0.10, +0.10 | 0.000" in lag
    assert "| 1 | 0.50 | 0.70 | +0.200" in chain


@pytest.mark.slow
def test_an_ablation_is_trained_once_and_published(tmp_path, monkeypatch, capsys):
    for module in (ablations, results):
        monkeypatch.setattr(module, "TASKS", TINY)
    page = tmp_path / "results.md"
    page.write_text("a\n<!-- ablations: begin -->\n<!-- ablations: end -->\nb\n", "utf-8")
    monkeypatch.setattr(ablations, "PAGE", page)
    monkeypatch.setattr(ablations, "RESULTS", tmp_path / "ablations.json")
    words = ["--runs", str(tmp_path), "--seeds", "0", "--tasks", "network", "--publish"]
    assert ablations.main([*words, "--changes", "chain", "own-weights"]) == 0
    first = capsys.readouterr().out
    assert first.count("| network | ") == 2
    assert first.strip() in page.read_text("utf-8")
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert ablations.main([*words, "--changes", "chain", "own-weights"]) == 0
    assert capsys.readouterr().out == first


@pytest.mark.slow
def test_runs_are_trained_once_and_reported(tmp_path, monkeypatch, capsys):
    for module in (command, results):
        monkeypatch.setattr(module, "TASKS", TINY)
    words = ["--runs", str(tmp_path), "--seeds", "0", "--tasks", "network"]
    assert command.main([*words, "--methods", "ippo", "ppo", "magrpo", "grpo"]) == 0
    first = capsys.readouterr().out
    assert first.count("| network | `") == 2
    monkeypatch.setattr("mlrl_learners.cli.train.train_config", None)  # nothing is trained again
    assert command.main([*words, "--methods", "ippo", "ppo", "magrpo", "grpo"]) == 0
    assert capsys.readouterr().out == first
    assert command.main([*words, "--methods", "ippo", "--gather-only"]) == 0
    assert "`ippo`, `ppo`" not in capsys.readouterr().out
