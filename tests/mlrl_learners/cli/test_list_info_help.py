import importlib

import pytest

import mlrl_envs
from mlrl_learners.cli import COMMANDS, main
from mlrl_learners.config.presets import presets
from mlrl_learners.registry import registry
from tests.mlrl_learners.cli.commands import run_json

pytestmark = pytest.mark.usefixtures("addition_env", "student")


class TestList:
    def test_names_every_environment_learner_and_preset(self, capsys):
        status, found = run_json(capsys, "list")
        assert status == 0
        names = {section: [row["name"] for row in rows] for section, rows in found.items()}
        assert names["environments"] == list(mlrl_envs.registry)
        assert names["learners"] == list(registry)
        assert names["presets"] == list(presets())
        assert all(row["summary"] for row in found["presets"])

    def test_prints_one_line_each(self, capsys):
        assert main(["list"]) == 0
        out = capsys.readouterr().out
        assert "student  " in out
        assert "learns to add" in out

    def test_shows_the_options_of_a_game_of_textarena(self, capsys):
        status, found = run_json(capsys, "list", "textarena/KuhnPoker-v0")
        assert (status, found["summary"].split(" (")[0]) == (0, "Games of TextArena")
        assert {"variant", "num_players"} <= {
            each["name"] for each in found["groups"][0]["options"]
        }


class TestInfo:
    def test_tells_versions_hardware_and_the_sandbox_tier(self, capsys):
        status, facts = run_json(capsys, "info")
        assert status == 0
        assert facts["packages"]["pettingzoo"]
        assert facts["cores"] >= 1
        assert facts["sandbox"]["tier"] in "ABCD"
        assert facts["sandbox"]["table"]

    def test_prints_tables(self, capsys):
        assert main(["info"]) == 0
        assert "sandbox tier" in capsys.readouterr().out


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_lists_every_command_with_its_first_line(name, capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    printed = " ".join(capsys.readouterr().out.split())
    module = importlib.import_module(f"mlrl_learners.cli.{COMMANDS[name]}")
    summary = module.__doc__.split("\n", 1)[0].split(": ", 1)[1]
    assert f"{name} {summary}" in printed
