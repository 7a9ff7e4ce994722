import json

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

import mlrl_envs
from mlrl_learners.cli import main
from mlrl_learners.runs.files import EPISODES_FILE
from tests.mlrl_learners.cli.bench_runs import bench


def _records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestRescore:
    @pytest.fixture
    def run_dir(self, suite, tmp_path, capsys):
        bench(suite, "random", tmp_path / "run")
        capsys.readouterr()
        return tmp_path / "run"

    def test_nothing_changes_without_a_reason(self, run_dir, capsys):
        assert main(["rescore", str(run_dir)]) == 0
        assert main(["rescore", str(run_dir / "result.json")]) == 0
        assert capsys.readouterr().out.count("12 episodes, every score as it was") == 2

    def test_change_is_named_and_can_be_kept(self, run_dir, tmp_path, capsys):
        path = run_dir / EPISODES_FILE
        first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
        first["turns"][0]["components"]["setup"]["ghost"] = 0.5
        first["returns"]["setup"] += 0.5
        path.write_text("".join(json.dumps(record) + "\n" for record in [first, *rest]))
        mended = tmp_path / "mended.jsonl"
        assert main(["rescore", str(run_dir), "--json", "--write", str(mended)]) == 1
        (change,) = json.loads(capsys.readouterr().out)["changes"]
        assert change["components"] == {"ghost": [0.25, 0.0]}
        assert main(["rescore", str(mended)]) == 0

    def test_result_is_written_anew_with_its_transcripts(self, run_dir, tmp_path, capsys):
        new = tmp_path / "new.json"
        assert main(["rescore", str(run_dir / "result.json"), "--write", str(new)]) == 0
        assert main(["rescore", str(new)]) == 0
        old = json.loads((run_dir / "result.json").read_text())
        assert json.loads(new.read_text())["overall"] == old["overall"]

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--env.max_turns", "3"], "has its own options"),
            (["--write", "new"], "--write NAME.json"),
        ],
    )
    def test_what_cannot_be_done_with_a_result_is_refused(self, run_dir, words, message, capsys):
        assert main(["rescore", str(run_dir / "result.json"), *words]) == 2
        assert message in capsys.readouterr().err

    def test_a_write_that_fails_leaves_the_file_as_it_was(self, run_dir, capsys):
        resource = pytest.importorskip("resource")
        path = run_dir / EPISODES_FILE
        before = path.read_bytes()
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        try:
            status = main(["rescore", str(run_dir), "--write", str(path)])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert status == 1
        assert "cannot write" in capsys.readouterr().err
        assert path.read_bytes() == before

    def test_each_record_keeps_the_scorer_of_its_own_environment(self, run_dir, tmp_path):
        new = tmp_path / "new.jsonl"
        assert main(["rescore", str(run_dir), "--write", str(new)]) == 0
        assert _records(new) == _records(run_dir / EPISODES_FILE)
        assert len({record["scorer"] for record in _records(new)}) == 2

    def test_new_options_are_stored_with_the_scores(self, tmp_path, capsys):
        old, new = tmp_path / "old.jsonl", tmp_path / "new.jsonl"
        words = ["--actor", "random", "--split", "sample", "--tasks", "2", "--episodes", str(old)]
        assert main(["evaluate", "mlrl/story-v1", *words]) == 0
        options = ["--env.reward", "paper"]
        assert main(["rescore", str(old), *options, "--write", str(new)]) == 1
        (origin,) = {json.dumps(record["source"]) for record in _records(new)}
        wanted = {"reward": "paper", "split": "sample"}
        assert json.loads(origin) == {"env_id": "mlrl/story-v1", "env_options": wanted}
        assert main(["rescore", str(new)]) == 0

    def test_new_options_set_the_scorer_and_end_the_membership_of_a_suite(self, run_dir, tmp_path):
        lines = (run_dir / EPISODES_FILE).read_text().splitlines(keepends=True)
        story, new = tmp_path / "story.jsonl", tmp_path / "new.jsonl"
        story.write_text("".join(line for line in lines if "mlrl/story-v1" in line))
        assert main(["rescore", str(story), "--env.reward", "paper", "--write", str(new)]) == 1
        env = mlrl_envs.make("mlrl/story-v1", split="sample", reward="paper", max_turns=1)
        assert {each["scorer"] for each in _records(new)} == {mlrl_envs.fingerprint(env)["scorer"]}
        assert not any("key" in record for record in _records(new))

    def test_episodes_of_evaluate_need_no_suite(self, tmp_path, capsys):
        file = tmp_path / "episodes.jsonl"
        words = ["--actor", "random", "--split", "sample", "--tasks", "2", "--episodes", str(file)]
        assert main(["evaluate", "mlrl/math-v2", "--env.max_turns", "1", *words]) == 0
        assert main(["rescore", str(file), "--env.max_turns", "1"]) == 0

    def test_an_answer_that_is_no_unicode_is_scored(self, run_dir, tmp_path, capsys):
        first, *_ = _records(run_dir / EPISODES_FILE)
        first["turns"][0]["actions"] = dict.fromkeys(first["turns"][0]["actions"], "\ud800")
        (tmp_path / "odd.jsonl").write_text(json.dumps(first) + "\n")
        assert main(["rescore", str(tmp_path / "odd.jsonl")]) in (0, 1)

    def test_a_result_that_lacks_an_entry_of_its_episodes_is_refused(self, run_dir, capsys):
        path = run_dir / "result.json"
        result = json.loads(path.read_text())
        result["entries"][0]["name"] = "other"
        path.write_text(json.dumps(result))
        assert main(["rescore", str(path)]) == 2
        assert "has no entry" in capsys.readouterr().err

    def test_what_is_no_episode_is_a_mistake(self, tmp_path, capsys):
        (tmp_path / "x.jsonl").write_text('{"a": 1}\n{}\n')
        assert main(["rescore", str(tmp_path / "x.jsonl")]) == 2
        assert "is not an episode" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            (
                {"env_id": "mlrl/story-v1", "source": 5},
                "source of an episode must be a JSON object, got 5",
            ),
            ({"source": {"env_id": "mlrl/story-v1", "env_options": ["a"]}}, "env_options of an"),
        ],
    )
    def test_labels_of_another_type_are_named(self, run_dir, tmp_path, capsys, changes, message):
        first, *_ = _records(run_dir / EPISODES_FILE)
        (tmp_path / "odd.jsonl").write_text(json.dumps({**first, **changes}) + "\n")
        assert main(["rescore", str(tmp_path / "odd.jsonl")]) == 2
        words = capsys.readouterr().err
        assert message in words
        assert words.count("\n") == 1

    def test_a_rollout_of_training_is_refused_with_what_can_be_scored(self, tmp_path, capsys):
        path = tmp_path / EPISODES_FILE
        path.write_text(json.dumps({"iteration": 1, "rollout": 0, "node": {"turn": 0}}) + "\n")
        assert main(["rescore", str(tmp_path)]) == 2
        words = capsys.readouterr().err
        assert f"{path}:1 is a rollout of training" in words
        assert "mlrl evaluate RUN --episodes FILE" in words
