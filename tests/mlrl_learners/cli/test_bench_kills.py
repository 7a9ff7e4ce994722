import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("scipy")
pytest.importorskip("jsonschema_rs")

from mlrl_learners.runs.files import EPISODES_FILE

KILLS = 10

MANY = """
name: many
version: 0
summary: many short episodes
seeds: [0, 1, 2, 3]
entries:
  - {env: mlrl/story-v1, split: all, budget: {samples: 8}}
  - {env: mlrl/math-v2, split: sample, budget: {samples: 8}}
"""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_kills_lose_nothing_and_double_nothing(tmp_path):
    """Kill a run at random instants and compare with one that nothing disturbed."""
    suite = tmp_path / "many.yaml"
    suite.write_text(MANY)

    def command(folder):
        words = ["bench", "run", "--suite", str(suite), "--actor", "random", "--batch-size", "4"]
        return [sys.executable, "-m", "mlrl_learners", *words, "--run-dir", str(folder)]

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = time.monotonic()
    subprocess.run(command(tmp_path / "whole"), check=True, **quiet)
    whole_seconds = time.monotonic() - started
    draw, kills, grew = random.Random(0), 0, []
    file = tmp_path / "killed" / EPISODES_FILE
    while kills < KILLS:
        run = subprocess.Popen(command(tmp_path / "killed"), start_new_session=True, **quiet)
        before = _size(file)
        # One kill in four comes at any time, before anything is written, too; the others while
        # lines are being written.
        deadline = time.monotonic() + (draw.uniform(0, whole_seconds / 6) if kills % 4 == 0 else 60)
        wanted = before + draw.randrange(60_000)
        while run.poll() is None and time.monotonic() < deadline:
            if _size(file) > wanted:
                break
            time.sleep(0.002)
        if run.poll() is not None:
            break
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
        kills += 1
        grew.append(_size(file) - before)
    subprocess.run(command(tmp_path / "killed"), check=True, **quiet)
    whole, killed = _records(tmp_path / "whole"), _records(tmp_path / "killed")
    print(f"{kills} kills, {sum(size > 0 for size in grew)} of them after something was written")
    assert kills == KILLS
    assert len({record["key"] for record in killed}) == len(killed) == len(whole)
    assert killed == whole
    results = [
        json.loads((tmp_path / name / "result.json").read_text()) for name in ("whole", "killed")
    ]
    assert _scores(results[0]) == _scores(results[1])


def _size(file):
    return file.stat().st_size if file.exists() else 0


def _records(folder):
    lines = (folder / EPISODES_FILE).read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [{k: v for k, v in record.items() if k != "seconds"} for record in records]


def _scores(result):
    return [{k: v for k, v in entry.items() if k != "seconds"} for entry in result["entries"]]
