import importlib
import sys

import pytest

from mlrl_envs.shell import definitions

FAMILY = '''
"""A family."""

from toy_rewards import limits
from toy_rewards.rules import BONUS, unused_rule
from toy_rewards import rules as the_rules


class Family:
    """Scores by rules."""

    size: int = limits.SIZE

    def score(self, value: int) -> int:
        """Return the score."""
        from toy_rewards.late import DELAY

        return value + BONUS + the_rules.doubled(value) + DELAY
'''
FILES = {
    "toy_family.py": FAMILY,
    "toy_rewards/__init__.py": '"""Rewards."""\n',
    "toy_rewards/limits.py": "SIZE = 3\nOTHER = 5\n",
    "toy_rewards/late.py": "DELAY = 1\n",
    "toy_rewards/rules.py": (
        "import math\n"
        "BONUS = 2\n"
        "WORDS = {}\n"
        "WORDS.update(a=1)\n"
        "def unused_rule():\n    return 7\n"
        "def doubled(value: int) -> int:\n"
        '    """Double a value."""\n'
        "    return 2 * value + len(WORDS) + helper()\n"
        "def helper():\n    return math.floor(0.5)\n"
    ),
}


@pytest.fixture
def reach(tmp_path, monkeypatch):
    """Return what `toy_family.Family` reaches when some of its files are changed."""
    runs = iter(range(100))

    def reach(changes=(), *, whole=(), excluded=()):
        folder = tmp_path / str(next(runs))
        for name, source in {**FILES, **dict(changes)}.items():
            if source is not None:
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(source)
        for name in [name for name in sys.modules if name.startswith("toy_")]:
            monkeypatch.delitem(sys.modules, name)
        for cached in (definitions._module, definitions._package_texts):
            cached.cache_clear()
        monkeypatch.syspath_prepend(folder)
        importlib.invalidate_caches()
        importlib.import_module("toy_family")
        packages = ("toy_family", "toy_rewards")
        options = {"packages": packages, "whole": whole, "excluded": excluded}
        return definitions.reachable("toy_family", "Family", **options)

    return reach


def replaced(name, old, new):
    assert old in FILES[name]
    return {name: FILES[name].replace(old, new)}


NEUTRAL = {
    "a docstring": replaced("toy_rewards/rules.py", "Double a value.", "Return twice the value."),
    "a comment": replaced("toy_rewards/rules.py", "BONUS = 2", "BONUS = 2  # points"),
    "an annotation": replaced("toy_rewards/rules.py", "value: int) -> int", "value)"),
    "the order": replaced("toy_rewards/rules.py", "import math\n", "def unused_too(): ...\n"),
    "a definition that is not reached": replaced("toy_rewards/rules.py", "return 7", "return 8"),
    "another constant": replaced("toy_rewards/limits.py", "OTHER = 5", "OTHER = 6"),
}
NEUTRAL["the order"]["toy_rewards/rules.py"] = (
    NEUTRAL["the order"]["toy_rewards/rules.py"] + "import math\n"
)


@pytest.mark.parametrize("change", NEUTRAL)
def test_what_cannot_change_a_result_changes_nothing(reach, change):
    assert reach(NEUTRAL[change]) == reach()


def test_a_moved_file_changes_nothing(reach):
    family = FAMILY.replace("toy_rewards.rules", "toy_rewards.prose.points")
    family = family.replace("toy_rewards import rules", "toy_rewards.prose import points")
    moved = {
        "toy_rewards/rules.py": None,
        "toy_rewards/prose/__init__.py": "",
        "toy_rewards/prose/points.py": FILES["toy_rewards/rules.py"],
        "toy_family.py": family,
    }
    assert reach(moved) == reach()


DECISIVE = {
    "a constant": replaced("toy_rewards/rules.py", "BONUS = 2", "BONUS = 3"),
    "a default": replaced("toy_rewards/limits.py", "SIZE = 3", "SIZE = 4"),
    "a helper of a helper": replaced("toy_rewards/rules.py", "floor", "ceil"),
    "a name imported late": replaced("toy_rewards/late.py", "DELAY = 1", "DELAY = 2"),
    "a statement that binds nothing": replaced("toy_rewards/rules.py", "a=1", "a=2"),
    "the class": replaced("toy_family.py", "return value +", "return -value +"),
}


@pytest.mark.parametrize("change", DECISIVE)
def test_what_can_change_a_result_is_seen(reach, change):
    assert reach(DECISIVE[change]) != reach()


def test_a_whole_package_is_reached_by_any_of_its_modules(reach):
    everything = reach(whole=("toy_rewards",))
    change = replaced("toy_rewards/limits.py", "OTHER = 5", "OTHER = 6")
    assert everything > reach(excluded=("toy_rewards",))
    assert reach(change, whole=("toy_rewards",)) != everything


def test_an_excluded_module_is_not_followed(reach):
    change = replaced("toy_rewards/limits.py", "SIZE = 3", "SIZE = 4")
    excluded = ("toy_rewards.limits",)
    assert reach(change, excluded=excluded) == reach(excluded=excluded)
