"""The reference pages leave nothing out."""

import importlib
import sys
from pathlib import Path

import pytest

import mlrl_envs
import mlrl_learners
from mlrl_envs.registration import BUILT_IN_GAMES, BUILT_IN_TURNS
from mlrl_learners.config.run import known_keys

DOCS = Path(__file__).parent.parent.parent / "docs"
OURS = [name for name in mlrl_envs.registry if name.startswith("mlrl/")]


@pytest.fixture(scope="module")
def reference():
    sys.path.insert(0, str(DOCS))
    try:
        yield importlib.import_module("reference")
    finally:
        sys.path.remove(str(DOCS))


@pytest.fixture(scope="module")
def pages(reference):
    return reference.environment_pages()


@pytest.mark.parametrize("env_id", OURS)
def test_every_environment_has_a_page_with_all_its_parts(pages, env_id):
    page = pages[f"environments/{env_id.removeprefix('mlrl/')}.md"]
    reads_texts = env_id not in {**BUILT_IN_GAMES, **BUILT_IN_TURNS}
    headings = (
        *("Agents", "Observation", "Action", "Reward", "Reward card"),
        *(("Reads", "Cannot read") if reads_texts else ()),
        *("Data", "Options"),
        *("An episode", "Version history"),
    )
    assert all(f"\n## {heading}\n" in page for heading in headings)
    agents = mlrl_envs.make(env_id, split="sample").possible_agents
    assert all(f"[{agent} earns]" in page for agent in agents)
    assert f"- {env_id.rpartition('-')[2]}: " in page
    assert env_id in pages["environments.md"]


@pytest.mark.parametrize("env_id", OURS)
def test_the_example_of_every_environment_runs(env_id, reference):
    _, sections = importlib.import_module("reference_environments").docstring_sections(env_id)
    exec(sections["Example"], {"mlrl_envs": mlrl_envs})


@pytest.mark.parametrize("env_id", OURS)
def test_every_option_of_an_environment_has_a_meaning(pages, env_id):
    page = pages[f"environments/{env_id.removeprefix('mlrl/')}.md"]
    options = page.split("## Options\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split(" | ") for line in options.splitlines() if line.startswith("| `")]
    assert len(rows) >= 5
    assert all(row[-1].strip(" |") for row in rows)


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


def test_every_module_is_on_the_page_of_modules_with_its_first_line(reference):
    page = importlib.import_module("reference_modules").modules_page()
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    folders = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    for package in ("mlrl_envs", "mlrl_learners", "benchmarks"):
        for file in (DOCS.parent / package).rglob("*.py"):
            if "templates" not in file.parts and file.name != "__init__.py":
                assert file.parent.relative_to(DOCS.parent).as_posix() in folders
                assert any(row.startswith(f"| `{file.name}` |") for row in rows)
    assert all(row.split(" | ")[1].strip(" |") for row in rows)


def test_sections_of_a_docstring_become_lists(reference):
    text = importlib.import_module("reference_markdown").docstring_as_markdown(
        "Do it.\n\nMore.\n\nArgs:\n    a: First,\n        and on.\n    **b: Rest.\n\nThe end."
    )
    assert text == (
        "Do it.\n\nMore.\n\n\n**Args**\n\n- `a`: First,\n  and on.\n- `**b`: Rest.\n\nThe end."
    )


def test_a_page_that_has_not_changed_is_left_alone(reference, tmp_path):
    reference.write_pages(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    reference.write_pages(tmp_path)
    assert before == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.md")}
    assert len(before) == 5 + len(OURS)


def test_the_page_of_an_environment_that_is_gone_is_removed(reference, tmp_path):
    gone = tmp_path / "environments" / "old-v0.md"
    gone.parent.mkdir()
    gone.write_text("old")
    reference.write_pages(tmp_path)
    assert not gone.exists()
    assert (gone.parent / "tldr-v1.md").exists()
