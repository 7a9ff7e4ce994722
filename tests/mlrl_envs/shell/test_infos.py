from types import MappingProxyType

from mlrl_envs.shell.infos import info_of
from mlrl_envs.types import Score, Task, Turn

CHECK = {"name": "length", "passed": True, "ratio": 0.5, "details": ("a", ["b", None])}


def info(diagnostics):
    score = Score({"writer": {"length": 1.0}}, solved=True, diagnostics={"writer": diagnostics})
    return info_of(Task("story/1"), (Turn({"writer": "text"}, score),), "writer", acts=False)


def test_diagnostics_come_as_plain_dicts_and_lists():
    found = info(MappingProxyType({"checks": (CHECK, MappingProxyType(CHECK))}))
    plain = {**CHECK, "details": ["a", ["b", None]]}
    assert found["diagnostics"] == {"checks": [plain, plain]}


def test_an_info_may_be_changed_without_changing_the_score():
    diagnostics = {"checks": [CHECK]}
    found = info(diagnostics)
    found["diagnostics"]["checks"][0]["details"][1].append("c")
    found["diagnostics"]["checks"].clear()
    assert diagnostics == {"checks": [{**CHECK, "details": ("a", ["b", None])}]}
