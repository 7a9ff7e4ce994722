"""Tests of the directories of sessions."""

# ruff: noqa: PTH101, PTH102, PTH110, PTH116, PTH123, PTH208, PTH211  paths are strings, as in the module

import os
import time

import pytest

from mlrl_envs.sandbox.sessions import folders


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = folders.PrivateFolder(os.geteuid())
    yield folder
    folder.remove()


def test_a_private_directory_has_mode_700_and_is_removed(folder):
    assert os.stat(folder.path).st_mode & 0o777 == 0o700
    folder.remove()
    assert not os.path.exists(folder.path)
    os.mkdir(folder.path)  # for the fixture


def test_renew_deletes_deep_and_unreadable_directories(folder):
    place = folder.path
    for _ in range(50):
        place += "/" + "d" * 60
        os.mkdir(place)
    os.symlink("/", f"{folder.path}/link")
    os.mkdir(f"{folder.path}/.lifted-1")
    os.mkdir(f"{folder.path}/.lifted-1/inner")
    os.chmod(f"{folder.path}/.lifted-1", 0)
    folder.renew()
    assert os.listdir(folder.path) == []
    assert os.path.exists("/")


def test_a_directory_is_full_by_size_and_by_number_of_files(folder):
    assert not folder.is_full()
    with open(f"{folder.path}/big", "wb") as big:
        big.truncate(folders.MAX_BYTES + 1)
    assert folder.is_full()
    folder.renew()
    for number in range(folders.MAX_ENTRIES + 1):
        os.mkdir(f"{folder.path}/{number}")
    assert folder.is_full()


def test_only_unlocked_directories_are_swept(folder, tmp_path):
    old = time.time() - 2 * folders.RECENT_SECONDS
    left = tmp_path / "mlrl-session-left"
    strange = tmp_path / "another"
    for path in (left, strange):
        path.mkdir()
        (path / "file").touch()
        os.utime(path, (old, old))
    os.utime(folder.path, (old, old))
    folders._sweep(str(tmp_path))
    assert not left.exists()
    assert strange.exists()
    assert os.path.exists(folder.path)


@pytest.mark.parametrize(("tier", "usable"), [("C", False), ("D", True)])
def test_tiers_without_file_confinement_have_no_directory(tier, usable, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = folders.open_folder(tier, [])
    assert folder.usable is usable
    folder.remove()


def test_landlock_without_truncation_rights_gives_no_directory(monkeypatch):
    monkeypatch.setattr("mlrl_envs.sandbox.jail.landlock.abi", lambda: 2)
    assert not folders.open_folder("B", []).usable
