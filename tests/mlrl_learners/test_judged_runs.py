"""Runs with `reward: judged` and a scorer that is named as `module:function`."""

import json

import pytest

import mlrl_learners
from mlrl_envs.errors import InfraError
from mlrl_envs.models.scorers import LikelihoodScorer
from mlrl_learners.actors import RandomActor
from mlrl_learners.bench.suite_run import RunSettings, play_suite
from mlrl_learners.cli import main
from mlrl_learners.config.option_places import merge_options
from mlrl_learners.errors import ConfigError
from mlrl_learners.runs.files import CONFIG_FILE, EPISODES_FILE, FAILURES_FILE, METRICS_FILE

SCORER = '''
from mlrl_envs.errors import ScorerError

class ByLetters:
    """Scores a text by its share of the letter e."""

    def __init__(self, fails):
        self.fails = fails

    @property
    def fingerprint(self):
        return "letters"

    def score_many(self, batch):
        if self.fails:
            raise ScorerError("out of memory")
        return [each.text.count("e") / max(1, len(each.text)) for each in batch]

def make(fails=False):
    return ByLetters(fails)
'''
OPTIONS = {"split": "sample", "reward": "judged", "scorer": "letters_scorer:make"}


@pytest.fixture(autouse=True)
def letters_scorer(tmp_path, monkeypatch):
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "letters_scorer.py").write_text(SCORER)
    monkeypatch.syspath_prepend(folder)


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def without_clock(records):
    return [
        {key: value for key, value in record.items() if not key.endswith(("seconds", "_second"))}
        for record in records
    ]


def train(run_dir, iterations, *words):
    options = [f"--env.{name}={value}" for name, value in OPTIONS.items()]
    words = [*words, f"--train.iterations={iterations}", "--train.eval_every=0"]
    return main(["train", "tiny", "--run-dir", str(run_dir), *options, *words])


def test_a_resumed_run_ends_like_one_that_was_not_interrupted(tmp_path):
    pytest.importorskip("torch")
    assert train(tmp_path / "whole", 3) == 0
    assert train(tmp_path / "parts", 1) == 0
    again = ["--run-dir", str(tmp_path / "parts"), "--resume", "--train.iterations=3"]
    assert main(["train", *again]) == 0
    for name in (METRICS_FILE, EPISODES_FILE):
        whole, parts = (without_clock(lines(tmp_path / run / name)) for run in ("whole", "parts"))
        assert whole == parts
    assert "letters_scorer:make" in (tmp_path / "whole" / CONFIG_FILE).read_text()


def test_a_resumed_run_keeps_its_scorer(tmp_path, capsys):
    pytest.importorskip("torch")
    assert train(tmp_path / "run", 1) == 0
    capsys.readouterr()
    words = ["--run-dir", str(tmp_path / "run"), "--resume", "--env.scorer=likelihood"]
    assert main(["train", *words]) == 2
    error = capsys.readouterr().err
    assert "env.options.scorer was 'letters_scorer:make', now 'likelihood'" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("scorer", [LikelihoodScorer, object])
def test_a_run_refuses_a_scorer_that_its_configuration_cannot_hold(tmp_path, scorer):
    if scorer is LikelihoodScorer:
        pytest.importorskip("torch")
        scorer = lambda: LikelihoodScorer("a/b", calibration=(-9, 0))  # noqa: E731
    with pytest.raises(ConfigError, match=r"'scorer' by a name, 'module:function'"):
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options=merge_options(OPTIONS, {"scorer": scorer()}),
            learner=None,
            run_dir=tmp_path / "run",
            iterations=1,
            tasks_per_iteration=1,
        )
    assert not (tmp_path / "run").exists()


class Random:
    """Random answers for every entry."""

    def identity(self, seed, env_id):
        return {"name": "random"}

    def make(self, agents, *, env_id, tokens, seed):
        return RandomActor(7)


@pytest.fixture
def suite():
    from mlrl_learners.bench.suite import suite_of

    options = {name: value for name, value in OPTIONS.items() if name != "split"}
    entry = {"env": "mlrl/tldr-v1", "split": "sample", "tasks": 3, "options": options}
    head = {"name": "judged", "version": 0, "summary": "judged", "seeds": [0, 1]}
    return suite_of({**head, "entries": [entry]})


def test_an_interrupted_suite_ends_as_if_nothing_had_happened(suite, tmp_path):
    settings = RunSettings(batch_size=2)
    (whole,) = play_suite(suite, Random(), tmp_path / "whole", settings)
    written = (tmp_path / "whole" / EPISODES_FILE).read_text().splitlines(keepends=True)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / EPISODES_FILE).write_text("".join(written[:2]) + written[2][:50])
    (again,) = play_suite(suite, Random(), tmp_path / "broken", settings)
    assert without_clock(again.episodes) == without_clock(whole.episodes)
    assert len(again.episodes) == 6


def test_a_scorer_that_fails_breaks_episodes_and_pays_no_zero(tmp_path):
    failing = merge_options(OPTIONS, {"scorer": {"kind": "letters_scorer:make", "fails": True}})
    with pytest.raises(InfraError, match="out of memory"):
        mlrl_learners.train(
            env_id="mlrl/story-v1",
            env_options=failing,
            learner=mlrl_learners.make("magrpo", model="tiny-random", agents=["setup", "story"]),
            run_dir=tmp_path / "run",
            iterations=1,
            tasks_per_iteration=2,
            eval_every=0,
            progress=False,
        )
    assert lines(tmp_path / "run" / EPISODES_FILE) == []
    assert all("out of memory" in str(each) for each in lines(tmp_path / "run" / FAILURES_FILE))
