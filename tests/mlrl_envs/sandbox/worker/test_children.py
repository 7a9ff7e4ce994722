"""Tests of what a program cannot leave behind for the next one in the same worker."""

import pytest

from mlrl_envs.sandbox import Program, Sandbox

DESCRIPTORS = (0, 1, 2, 3)
READ_FLAGS = f"import fcntl\nflags = [fcntl.fcntl(n, fcntl.F_GETFL) for n in {DESCRIPTORS}]\n"
MARK = f"for n in {DESCRIPTORS}:\n    fcntl.fcntl(n, fcntl.F_SETFL, 0o6000)\n"


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(workers=1, cache=False) as sandbox:
        yield sandbox


def test_flags_of_descriptors_end_with_the_program(sandbox):
    def run(source):
        program = Program(source, "assert f() == 'told'", "asserts", ("f",))
        return sandbox.run(program).tests[0].error

    before = run(f"{READ_FLAGS}def f():\n    return flags\n")
    run(f"{READ_FLAGS}def f():\n" + "".join(f"    {line}\n" for line in MARK.splitlines()))
    assert run(f"{READ_FLAGS}def f():\n    return flags\n") == before != ""


def test_flags_of_descriptors_end_with_the_session(sandbox):
    before = sandbox.session().run(f"{READ_FLAGS}flags")
    sandbox.session().run(READ_FLAGS + MARK)
    after = sandbox.session().run(f"{READ_FLAGS}flags")
    assert after == before
    assert before.status == "ok"
