"""Tests of deadline extensions."""

from mlrl_envs.sandbox.worker.deadlines import DeadlineExtension


def granted(used_at_each_deadline, seconds=3.0):
    """Return the number of extensions before one is refused."""
    used = iter(used_at_each_deadline)
    extension = DeadlineExtension(lambda: next(used))
    count = 0
    while extension.grant(seconds):
        count += 1
    assert extension.granted(0.0) == count * seconds
    return count


def test_a_sleeping_program_gets_no_extension():
    assert granted([0.004]) == 0


def test_a_program_that_used_its_time_gets_no_extension():
    assert granted([2.97]) == 0


def test_a_program_that_shared_its_core_is_extended_until_it_used_its_time():
    assert granted([1.0, 2.0, 3.0]) == 2


def test_a_program_that_falls_asleep_gets_no_further_extension():
    assert granted([1.0, 1.01]) == 1


def test_unknown_processor_time_gives_no_extension():
    assert granted([float("inf")]) == 0


def test_extensions_start_from_zero_at_each_step():
    extension = DeadlineExtension(lambda: 1.0)
    assert extension.granted(5.0) == 0.0
    assert extension.grant(3.0)
    assert extension.granted(5.0) == 3.0
    assert extension.granted(9.0) == 0.0
