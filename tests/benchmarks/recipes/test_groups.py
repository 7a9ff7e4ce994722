import json

import pytest

from benchmarks.recipes import groups
from benchmarks.recipes import toys as recipes
from mlrl_learners.testing.toys import TOYS


@pytest.mark.parametrize(("group_by", "weight_by"), groups.GROUPS)
def test_every_kind_of_group_is_trained(group_by, weight_by):
    assert 0.0 < groups.run(group_by, weight_by, toy="relay", seed=0, updates=1) < 1.5


def test_the_table_has_means_and_intervals_of_all_toys():
    row = {"group_by": "agent", "weight_by": "step", "returns": [0.1, 0.2, 0.3]}
    found = groups.table({"relay": [row], "late_cost": [{**row, "returns": [0.5]}]})
    assert found.splitlines()[-1] == "| `agent` | `step` | 0.20 ± 0.25 | 0.50 |"
    assert f"best {TOYS['relay'].optimum:.2f}" in found


def test_the_table_of_the_page_is_that_of_the_stored_results():
    stored = json.loads(groups.RESULTS.read_text(encoding="utf-8"))
    assert groups.table(stored["toys"]) in recipes.PAGE.read_text(encoding="utf-8")
