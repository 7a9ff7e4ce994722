import json

from benchmarks.pictures import write_beginning


def test_the_beginning_of_a_run_has_its_first_iterations(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    for name, numbers in (("metrics.jsonl", range(1, 6)), ("evaluations.jsonl", (0, 4))):
        rows = [json.dumps({"iteration": number, "train/return": 1.0}) for number in numbers]
        (run / name).write_text("".join(row + "\n" for row in rows))
    write_beginning(run, tmp_path / "copy", 3)
    found = {name: (tmp_path / "copy" / name).read_text().count("\n") for name in
             ("metrics.jsonl", "evaluations.jsonl")}  # fmt: skip
    assert found == {"metrics.jsonl": 3, "evaluations.jsonl": 1}
