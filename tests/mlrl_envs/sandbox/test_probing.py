import json
import subprocess
import sys

from mlrl_envs.sandbox import probe


def test_the_probe_names_a_tier_and_a_layer_a_row():
    seen = probe()
    assert seen.tier in "ABCD"
    assert [row.name for row in seen.table] == ["namespaces", "Landlock", "seccomp"]
    assert json.loads(json.dumps(seen.as_dict()))["tier"] == seen.tier
    assert f"tier {seen.tier}" in str(seen)


def test_the_probe_obeys_the_cap(monkeypatch):
    monkeypatch.setenv("MLRL_SANDBOX_TIER", "D")
    assert probe().tier == "D"


def test_the_module_prints_the_probe():
    said = subprocess.run(
        [sys.executable, "-m", "mlrl_envs.sandbox"], capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith("sandbox tier ")
