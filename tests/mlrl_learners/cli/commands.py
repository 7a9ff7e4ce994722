"""Helpers of the tests of commands: the id of a fake environment, and the JSON of a command."""

import json

from mlrl_learners.cli import main

ENV_ID = "test/addition-v0"


def run_json(capsys, *words):
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)
