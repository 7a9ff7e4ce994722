"""Packages of an extra, from the metadata of installed packages."""

import json

from benchmarks.extras import closure, main


def test_requirements_are_followed_and_missing_packages_left_out():
    found = closure(["gymnasium", "no-such-package>=1"])
    assert {"gymnasium", "numpy"} <= found.keys()
    assert "no-such-package" not in found


def test_an_extra_counts_what_the_base_lacks(capsys):
    assert main(["--json"]) == 0
    base, *extras = json.loads(capsys.readouterr().out)
    assert base["extra"] == ""
    assert base["packages"] >= 4
    by_name = {each["extra"]: each for each in extras}
    assert by_name["learners"]["megabytes"] > by_name["monitor"]["megabytes"] > 0
