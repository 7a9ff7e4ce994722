"""The reference pages leave nothing out."""

import importlib.util
from pathlib import Path

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_learners.config import known_keys

PATH = Path(__file__).parent.parent.parent / "docs" / "reference.py"


@pytest.fixture(scope="module")
def reference():
    spec = importlib.util.spec_from_file_location("reference", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("env_id", [name for name in mlrl_envs.registry if name[:4] == "mlrl"])
def test_every_environment_has_its_agents_options_and_first_observations(reference, env_id):
    page = reference.environments_page().split(f"## {env_id}\n", 1)[1]
    for name in [*mlrl_envs.make(env_id).possible_agents, "`split`", "reads first"]:
        assert name in page


def test_every_learner_is_named(reference):
    page = reference.learners_page()
    assert all(f"`{name}`" in page for name in mlrl_learners.registry)


def test_every_configuration_key_has_a_meaning(reference):
    rows = [line.split(" | ") for line in reference.configuration_page().splitlines()]
    meanings = {row[0].strip("| `"): row[-1].strip(" |") for row in rows if len(row) == 3}
    assert all(meanings[key] for key in known_keys())


def test_every_option_of_magrpo_has_a_meaning(reference):
    rows = [line.split(" | ") for line in reference.learners_page().splitlines()]
    assert all(row[-1].strip(" |") for row in rows if len(row) == 3)


def test_every_public_name_is_there(reference):
    page = reference.api_page()
    for module in (mlrl_envs, mlrl_learners):
        for name in set(module.__all__) - {"registry", "sandbox"}:
            assert f"### {module.__name__}.{name}\n" in page


def test_sections_of_a_docstring_become_lists(reference):
    text = reference.docstring_as_markdown(
        "Do it.\n\nMore.\n\nArgs:\n    a: First,\n        and on.\n    **b: Rest.\n\nThe end."
    )
    assert text == (
        "Do it.\n\nMore.\n\n\n**Args**\n\n- `a`: First,\n  and on.\n- `**b`: Rest.\n\nThe end."
    )


def test_a_page_that_has_not_changed_is_left_alone(reference, tmp_path):
    reference.write_pages(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reference.write_pages(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(before) == 4
