"""Tab completion: what a shell is answered."""

import subprocess
import sys

import pytest

pytest.importorskip("argcomplete")


def completions(tmp_path, line):
    """Ask as bash does, with the cursor at the end of the line."""
    answer = tmp_path / "answer"
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "PYTHONPATH": ":".join(sys.path),
    }
    code = "from mlrl_learners.cli import main; main()"
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return answer.read_text().split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("mlrl ev", ["evaluate"]),
        ("mlrl train dap", ["dapo"]),
        ("mlrl serve pol", ["policy"]),
        ("mlrl play --acto", ["--actor"]),
        ("mlrl bench run --suite read", []),
        ("mlrl bench run --suite reas", ["reasoning"]),
        ("mlrl play mlrl/tic", ["mlrl/tictactoe-v0"]),
    ],
)
def test_a_shell_completes_commands_options_and_names(tmp_path, line, expected):
    assert completions(tmp_path, line) == expected
