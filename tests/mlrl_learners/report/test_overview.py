import json

import pytest

from mlrl_learners.report.overview import command_of


@pytest.mark.parametrize(
    ("program", "shown"),
    [
        ("/somewhere/bin/mlrl", "mlrl"),
        ("/somewhere/mlrl_learners/__main__.py", "mlrl"),
        ("/somewhere/benchmarks/games/__main__.py", "python -m games"),
        ("/somewhere/study/sweep.py", "python sweep.py"),
        ("", "python"),
    ],
)
def test_a_command_begins_with_the_program_that_ran(program, shown):
    stored = json.dumps({"command": [program, "--name", "two words"]})
    assert command_of(stored) == f"{shown} --name 'two words'"


@pytest.mark.parametrize("stored", ["", "{", "{}", '{"command": "mlrl"}', '{"command": []}'])
def test_a_command_that_is_not_stored_is_empty(stored):
    assert command_of(stored) == ""
