import pytest

import mlrl_envs
from mlrl_envs.errors import InvalidArgumentError, UnknownNameError
from mlrl_envs.tools.toolbox import tool_schemas

OWN = """
class WithTools:
    @staticmethod
    def tools():
        return [{"type": "function", "function": {"name": "ask", "parameters": {}}}]
"""


def test_tools_of_a_task_family_are_its_schemas():
    assert mlrl_envs.tools_of("mlrl/tools-v1") == tool_schemas()


def test_tools_of_an_own_environment_are_those_of_its_class(tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    (schema,) = mlrl_envs.tools_of(f"{tmp_path / 'own.py'}:WithTools")
    assert schema["function"]["name"] == "ask"


@pytest.mark.parametrize("env_id", ["mlrl/math-v2", "mlrl/nim-v0"])
def test_an_environment_without_tools_is_told_which_have_some(env_id):
    with pytest.raises(InvalidArgumentError, match=f"{env_id}' has no tools; .*mlrl/tools-v1"):
        mlrl_envs.tools_of(env_id)


def test_an_unknown_environment_has_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean 'mlrl/tools-v1'"):
        mlrl_envs.tools_of("mlrl/tool-v1")
