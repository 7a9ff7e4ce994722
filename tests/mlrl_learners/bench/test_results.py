import json

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.bench.compare import compare
from mlrl_learners.bench.results import (
    figures_of,
    overall_of,
    read_result,
    read_transcripts,
    write_result,
)
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.errors import ConfigError

pytestmark = pytest.mark.usefixtures("addition_env")
SETTINGS = RunSettings()


@pytest.fixture
def make_result(make_suite, make_source, tmp_path):
    def make(name="scripted", answer="1", **options):
        suite = make_suite(**{"budget": {"turns": None}, **options})
        source = make_source(name, answer)
        played = play_suite(suite, source, tmp_path / f"run-{name}", SETTINGS)
        path = tmp_path / f"{name}.json"
        write_result(path, suite, source.describe(), played, SETTINGS)
        return path

    return make


def test_result_keeps_to_its_schema_and_reads_back(make_result):
    result = read_result(make_result())
    assert result["complete"]
    assert result["entries"][0]["mean"] == 0.25
    assert result["entries"][0]["pass_at_k"]["1"] == 0.25
    assert result["entries"][0]["components"] == {"tests": 0.25}


def test_every_figure_follows_from_the_transcripts(make_result):
    path = make_result()
    result = read_result(path)
    derived = json.loads(json.dumps(figures_of(read_transcripts(path, result))))
    assert {name: result["entries"][0][name] for name in derived} == derived
    assert json.loads(json.dumps(overall_of([derived]))) == result["overall"]


def test_run_with_failures_says_so(make_result):
    result = read_result(make_result(options={"broken": True}))
    assert not result["complete"]
    assert result["failures"] == [
        {
            "entry": "test/addition-v0:train",
            "error": "InfraError",
            "episodes": 2,
            "message": "no worker",
        }
    ]
    assert result["entries"][0]["mean"] == pytest.approx(1 / 3)  # of three tasks, none a zero


def test_result_without_episodes_has_no_mean():
    assert figures_of([])["mean"] is None
    assert overall_of([figures_of([])])["interval"] is None


def test_prompts_are_published_only_where_the_suite_says_so(make_result):
    path = make_result()
    (first, *_) = read_transcripts(path, read_result(path))
    assert "observations" not in first["turns"][0]
    assert first["turns"][0]["actions"] == {"left": "1", "right": "1"}


def test_result_names_no_folder_of_this_machine(make_result, tmp_path):
    assert str(tmp_path) not in make_result().read_text()


def test_changed_transcripts_are_refused(make_result):
    path = make_result()
    result = read_result(path)
    path.with_name(result["transcripts"]["file"]).write_bytes(b"")
    with pytest.raises(ConfigError, match="other SHA-256"):
        read_transcripts(path, result)


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda r: r.pop("actor"), 'is no result: "actor" is a required property'),
        (lambda r: r["entries"][0].update(mean="high"), r"entries\[0\]\.mean"),
        (lambda r: r["suite"].update(hash="x"), r"suite\.hash"),
        (lambda r: r.update(format="mlrl-bench/0"), "format"),
        (lambda r: r["entries"][0].update(returns={"a": {}}), r"entries\[0\]\.returns\.a"),
        (lambda r: r["entries"][0].update(mean=10**400), r"entries\[0\]\.mean"),
        (lambda r: r["entries"][0].update(tokens=10**400), r"entries\[0\]\.tokens"),
        (lambda r: r["actor"].update(note="\ud800"), "is no result: 'utf-8' codec"),
        (lambda r: r["entries"][0].update(measures={"figures": {"<b>|": 1}}), "measures.figures"),
        (lambda r: r["actor"].update(trained="yes"), r"actor\.trained"),
        (lambda r: r["actor"].update(trained=[{"env": "me/a-v0"}]), r"actor\.trained\[0\]"),
    ],
)
def test_broken_result_names_the_place(make_result, change, place):
    path = make_result()
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value))
    with pytest.raises(ConfigError, match=place):
        read_result(path)


def test_a_file_that_is_nested_without_end_is_refused(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="cannot read a result"):
        read_result(tmp_path / "deep.json")


class TestCompare:
    def test_says_who_is_better_and_how_sure_that_is(self, make_result):
        found = compare(read_result(make_result("one", "1")), read_result(make_result("none", "x")))
        assert found["overall"]["difference"] == 0.25
        assert found["overall"]["probability_of_improvement"] == pytest.approx(0.625)
        assert 0 < found["overall"]["p_value"] <= 1
        assert found["entries"][0]["tasks"] == 4

    def test_nothing_differs_from_itself(self, make_result):
        result = read_result(make_result())
        found = compare(result, result)["overall"]
        assert (found["difference"], found["p_value"]) == (0, 1)

    def test_refuses_unequal_budgets_unless_told_otherwise(self, make_result):
        small = read_result(make_result("a", budget={"turns": None, "tokens": 8}))
        large = read_result(make_result("b", budget={"turns": None, "tokens": 9}))
        with pytest.raises(ConfigError, match=r"unequal budget.*--allow-unequal"):
            compare(small, large)
        assert "unequal budget" in str(compare(small, large, allow_unequal=True)["warnings"])

    def test_flags_more_tokens_spent_in_the_same_budget(self, make_result):
        ours, theirs = read_result(make_result("a")), read_result(make_result("b"))
        ours["entries"][0]["tokens"] = 80
        theirs["entries"][0]["tokens"] = 800
        assert any("tokens an episode" in w for w in compare(ours, theirs)["warnings"])

    def test_refuses_other_data(self, make_result):
        ours, theirs = read_result(make_result("a")), read_result(make_result("b"))
        theirs["entries"][0]["data"] = "0" * 64
        with pytest.raises(ConfigError, match="other data"):
            compare(ours, theirs)

    def test_refuses_what_shares_nothing(self, make_result):
        ours, theirs = read_result(make_result("a")), read_result(make_result("b", split="eval"))
        with pytest.raises(ConfigError, match="nothing to compare"):
            compare(ours, theirs)


def test_returns_of_different_scales_have_no_mean(add_result, two_environments):
    suite = {**two_environments, "common_scale": False}
    result = read_result(add_result("a", "The fox. ANSWER: 3", suite=suite))
    overall = result["overall"]
    assert [entry["mean"] is None for entry in result["entries"]] == [False, False]
    assert (overall["mean"], overall["interval"], overall["iqm"]) == (None, None, None)
    assert overall["solved_rate"] is not None
    compared = compare(result, read_result(add_result("b", "", suite=suite)))
    assert compared["entries"][0]["difference"] is not None
    assert (compared["overall"]["difference"], compared["overall"]["p_value"]) == (None, None)
    assert compared["overall"]["probability_of_improvement"] is not None


def test_one_entry_of_a_suite_with_different_scales_has_a_mean(add_result, two_environments):
    suite = {**two_environments, "common_scale": False}
    one = {**suite, "entries": suite["entries"][:1]}
    result = read_result(add_result("a", "The fox.", suite=one))
    assert result["overall"]["mean"] == result["entries"][0]["mean"]
    assert compare(result, result)["overall"]["difference"] == 0


def test_environments_weigh_the_same_in_every_figure_of_a_comparison():
    def result(name, one, many):
        tasks = {"one": [one], "many": [many] * 20}
        entries = [
            {
                **dict.fromkeys(("name", "env"), env),
                **dict.fromkeys(("split", "data"), ""),
                **dict.fromkeys(("budget", "options", "scorers")),
                **dict.fromkeys(("episodes", "tokens"), 1),
                "returns": {str(i): {"0": [value]} for i, value in enumerate(values)},
            }
            for env, values in tasks.items()
        ]
        suite = {"name": "mine", "version": 0}
        return {"actor": {"name": name}, "complete": True, "suite": suite, "entries": entries}

    overall = compare(result("a", 1.0, 0.0), result("b", 0.0, 0.1))["overall"]
    assert overall["difference"] == pytest.approx(0.45)
    assert overall["probability_of_improvement"] == pytest.approx(0.5)
    # 1 outweighs 0.1 whatever else is exchanged: only what keeps or exchanges all reaches 0.45.
    assert overall["p_value"] > 0.9
