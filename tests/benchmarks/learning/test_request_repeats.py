"""The share of a request that answers repeat."""

import gzip
import json

import pytest

from benchmarks.learning.request_repeats import main, repeats

REQUEST = "Tell of a fox who delivers letters in the snow:\n\nYou write the story."
COPY = "A fox who delivers letters in the snow set out. It was late."
FREE = "The morning was cold. A fox ran through the snow."


def episode(answer, value=0.5):
    turn = {"observations": {"story": REQUEST}, "actions": {"story": answer}}
    return {"return": value, "turns": [turn]}


@pytest.mark.parametrize(
    ("answer", "run", "first"), [(COPY, 1.0, 1.0), (FREE, 0.0, 0.0), ("", 0.0, 0.0)]
)
def test_words_of_the_request_are_found_in_an_answer(answer, run, first):
    found = repeats([episode(answer)])
    assert found["four words in a row"] == run
    assert found["words in the first sentence"] == first


def test_values_are_means_over_answers():
    found = repeats([episode(COPY, 1.0), episode(FREE, 0.0)])
    assert found["return"] == found["four words in a row"] == 0.5


def test_transcripts_without_prompts_are_refused_with_the_reason(tmp_path, capsys):
    file = tmp_path / "a.episodes.jsonl"
    line = {"entry": "mlrl/story-v1:eval", **episode(COPY)}
    del line["turns"][0]["observations"]
    file.write_text(json.dumps(line) + "\n")
    assert main([str(file)]) == 2
    said = capsys.readouterr().err
    assert f"cannot read {str(file)!r}: its episodes have no prompts" in said
    assert "show_prompts" in said


def test_an_unfinished_last_line_of_a_live_run_is_left_out(tmp_path, capsys):
    run = tmp_path / "run" / "evaluations.jsonl"
    run.parent.mkdir()
    line = json.dumps({"env_id": "mlrl/story-v1", "iteration": 9, "episodes": [episode(FREE)]})
    for text in (f"{line}\n{line[:40]}", line):
        run.write_text(text)
        assert main([str(run)]) == 0
        assert capsys.readouterr().out.count("run, iteration 9") == 1


def test_results_and_evaluations_of_runs_are_read(tmp_path, capsys):
    result = tmp_path / "a.episodes.jsonl.gz"
    lines = [{"entry": "mlrl/story-v1:eval", **episode(COPY)}, {"entry": "mlrl/tldr-v1:eval"}]
    result.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    run = tmp_path / "run" / "evaluations.jsonl"
    run.parent.mkdir()
    line = {"env_id": "mlrl/story-v1", "iteration": 9, "episodes": [episode(FREE)]}
    run.write_text(json.dumps(line) + "\n")
    assert main([str(result), str(run)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[2:] == ["| a | 0.50 | 1.00 | 1.00 |", "| run, iteration 9 | 0.50 | 0.00 | 0.00 |"]
    assert main([str(run), "--env", "mlrl/tldr-v1"]) == 1
    assert "no episodes of mlrl/tldr-v1" in capsys.readouterr().err
    assert main([str(tmp_path / "none.jsonl")]) == 2
    assert "cannot read" in capsys.readouterr().err
