"""Tests of the file operations of a session, in one process."""

import os

import pytest

from mlrl_envs.sandbox.sessions.files import operate


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Directory of a session, next to a file that it must not reach."""
    (tmp_path / "outside").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


def test_a_written_file_is_read_listed_and_deleted(place):
    assert operate("list", "", "", 99) == (True, "no files")
    assert operate("write", "a/b.txt", "ü", 99) == (True, "wrote 2 bytes")
    assert operate("read", "./a//b.txt", "", 99) == (True, "ü")
    assert (
        operate("list", "", "", 99) == operate("list", "a", "", 99) == (True, "a/b.txt (2 bytes)")
    )
    assert operate("delete", "a", "", 99) == (False, "a: Directory not empty")
    assert (
        operate("delete", "a/b.txt", "", 99) == operate("delete", "a", "", 99) == (True, "deleted")
    )


def test_reading_is_limited(place):
    operate("write", "f", "x" * 100, 0)
    assert operate("read", "f", "", 10) == (True, "x" * 10)


@pytest.mark.parametrize(
    "path",
    ["../outside", "/etc/hostname", "up/outside", "link", "", ".", "x" * 256, "\0", "\ud800"],
)
@pytest.mark.parametrize("kind", ["read", "write"])
def test_a_path_stays_inside(place, kind, path):
    (place / "up").symlink_to("..")
    (place / "link").symlink_to("../outside")
    fine, text = operate(kind, path, "changed", 99)
    assert not fine
    assert "secret" not in text
    assert (place.parent / "outside").read_text() == "secret"


def test_only_regular_files_are_read(place):
    os.mkfifo(place / "pipe")
    (place / "folder").mkdir()
    for path in ("pipe", "folder", "none"):
        assert not operate("read", path, "", 99)[0]


def test_a_long_list_is_shortened(place):
    for number in range(205):
        (place / f"{number:03}").touch()
    lines = operate("list", "", "", 99)[1].splitlines()
    assert lines[0] == "000 (0 bytes)"
    assert lines[-1] == "and 5 more"
