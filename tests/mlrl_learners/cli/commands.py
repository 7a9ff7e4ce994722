"""What tests of commands share: the fake environment's id, and a command's JSON."""

import json

from mlrl_learners.cli import main

ENV_ID = "test/addition-v0"


def run_json(capsys, *words):
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)
