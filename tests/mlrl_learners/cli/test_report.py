import json

from mlrl_learners.cli import main


def test_the_report_is_written_where_asked(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1, "train/return": 0.5}\n')
    out = tmp_path / "away.html"
    assert main(["report", str(tmp_path), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(out), "bytes": out.stat().st_size}
    assert "Return" in out.read_text()


def test_damaged_lines_are_one_warning_and_the_end_of_a_killed_run_is_none(tmp_path, capsys):
    torn = '{"iteration": 2, "train/ret'
    whole = '{"iteration": 1, "train/return": 0.5}\n'
    (tmp_path / "metrics.jsonl").write_text(f"{whole}{torn}")
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().err == ""
    (tmp_path / "metrics.jsonl").write_text(f"garbage\n{whole}")
    (tmp_path / "episodes.jsonl").write_text("garbage\n")
    assert main(["report", str(tmp_path)]) == 0
    warning = "mlrl: 2 lines of the run's files could not be read and were left out\n"
    assert capsys.readouterr().err == warning


def test_a_missing_run_is_one_line(tmp_path, capsys):
    assert main(["report", str(tmp_path / "no")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
