"""Tests of the detection of the host's tier."""

import json
import subprocess
import sys

from mlrl_envs.sandbox import probe


def test_the_probe_names_the_tier_and_one_layer_per_row():
    seen = probe()
    assert seen.tier in "ABCD"
    assert [row.name for row in seen.table] == ["namespaces", "Landlock", "seccomp"]
    assert json.loads(json.dumps(seen.as_dict()))["tier"] == seen.tier
    assert f"tier {seen.tier}" in str(seen)


def test_the_probe_obeys_the_tier_variable(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "D")
    assert probe().tier == "D"


def test_the_module_prints_the_probe():
    said = subprocess.run(
        [sys.executable, "-m", "mlrl_envs.sandbox"], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("sandbox tier ")
