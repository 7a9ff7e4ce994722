import pytest

from mlrl_envs.errors import InvalidArgumentError, RefusedError
from mlrl_envs.reference_actions import reference_of


class Task:
    def __init__(self, found):
        self.found = found

    def reference_actions(self):
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


@pytest.mark.parametrize(
    ("env", "found"),
    [
        (Task({"a": "4"}), {"a": "4"}),
        (Task(None), None),
        (object(), None),
        (Task(RefusedError("start it with --references")), None),
    ],
    ids=["given", "unknown", "without the method", "kept by a server"],
)
def test_a_reference_is_its_actions_or_none(env, found):
    assert reference_of(env) == found


def test_a_reference_of_another_type_is_named():
    with pytest.raises(InvalidArgumentError, match="must map agents to texts, got '4'"):
        reference_of(Task("4"))
