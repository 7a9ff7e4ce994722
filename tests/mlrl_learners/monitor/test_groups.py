"""Groups of runs in the charts."""

import pytest

from mlrl_learners.monitor.library import MonitoredRun
from mlrl_learners.monitor.pages.curves import View


@pytest.mark.parametrize(
    ("colors", "shown"),
    [((2, 3), 2), ((7, 3), 3), ((8, 7), 7)],
)
def test_a_group_has_the_first_colour_of_its_runs(colors, shown, tmp_path):
    runs = []
    for seed, color in enumerate(colors):
        folder = tmp_path / f"run-{seed}"
        folder.mkdir()
        (folder / "config.yaml").write_text(
            f"learner:\n  name: magrpo\ntrain:\n  iterations: 1\n  seed: {seed}\n"
        )
        runs.append(MonitoredRun.at(folder.name, folder, color))
    lines = View.parse({"group": "seed"}, [run.name for run in runs], runs).lines()
    assert {color for _, color in lines.values()} == {shown}
