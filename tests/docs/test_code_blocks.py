"""README and docs: Python blocks, command lines, make targets and links all work."""

import re
import shlex
from pathlib import Path

import pytest

from mlrl_learners.cli import build_parser
from mlrl_learners.cli.parser import split_words
from mlrl_learners.config.presets import presets
from mlrl_learners.config.run import from_mapping, load_config

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        *(ROOT / "docs").glob("*.md"),
    ]
)
FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
MAKE_TARGETS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)


def blocks(page, language):
    """Yield the first line's number and the text of each block of a language."""
    text = page.read_text("utf-8")
    for match in FENCE.finditer(text):
        if match[2].strip() == language:
            yield text.count("\n", 0, match.start(3)) + 1, match[3]


def command_lines():
    for page in PAGES:
        for _, text in blocks(page, "bash"):
            for line in text.replace("\\\n", " ").splitlines():
                yield line.partition("#")[0].strip()
        for _, text in blocks(page, "console"):
            for line in text.splitlines():
                if line.startswith("$ "):
                    yield line.removeprefix("$ ").partition("#")[0].strip()


@pytest.mark.parametrize(
    "page", [page for page in PAGES if list(blocks(page, "python"))], ids=lambda page: page.name
)
def test_every_python_block_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for cache in ("HF_MODULES_CACHE", "HF_EVALUATE_CACHE", "HF_METRICS_CACHE"):
        monkeypatch.setenv(cache, str(tmp_path / "cache"))  # nothing of ours in the user's own
    namespace = {"__name__": "__main__"}
    for line, source in blocks(page, "python"):
        code = compile("\n" * (line - 1) + source, str(page), "exec")  # right lines in tracebacks
        exec(code, namespace)


@pytest.mark.parametrize(
    "line", sorted({line for line in command_lines() if line.startswith("mlrl ")})
)
def test_every_command_line_is_understood(line):
    plain, overrides = split_words(shlex.split(line)[1:])
    arguments = build_parser().parse_args(plain)
    assert arguments.sections or not overrides
    if getattr(arguments, "source", None) in presets():
        load_config(arguments.source, overrides)
    else:
        from_mapping({"env": {"id": "any"}}, overrides)


@pytest.mark.parametrize(
    "line", sorted({line for line in command_lines() if line.startswith("pip install")})
)
def test_every_folder_to_install_follows_its_own_option(line):
    words = shlex.split(line)[2:]
    packages = [x for at, x in enumerate(words) if x != "-e" and "-e" not in words[at - 1 : at]]
    assert not packages or "-e" not in words


@pytest.mark.parametrize(
    "target", sorted({line.split()[1] for line in command_lines() if line.startswith("make ")})
)
def test_every_target_of_make_exists(target):
    assert target in MAKE_TARGETS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
        generated = target.startswith("reference/") or "docs/reference/" in target
        assert generated or (page.parent / target).exists(), target
