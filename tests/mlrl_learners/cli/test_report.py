import json

from mlrl_learners.cli import main


def test_the_report_is_written_where_asked(tmp_path, capsys):
    (tmp_path / "metrics.jsonl").write_text('{"iteration": 1, "train/return": 0.5}\n')
    out = tmp_path / "away.html"
    assert main(["report", str(tmp_path), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(out), "bytes": out.stat().st_size}
    assert "Return" in out.read_text()


def test_a_missing_run_is_one_line(tmp_path, capsys):
    assert main(["report", str(tmp_path / "no")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
