from mlrl_envs.sandbox.worker.deadlines import DeadlineExtension


def granted(used_at_each_deadline, seconds=3.0):
    """Return how often a deadline is moved before it holds."""
    used = iter(used_at_each_deadline)
    patience = DeadlineExtension(lambda: next(used))
    count = 0
    while patience.grant(seconds):
        count += 1
    assert patience.granted(0.0) == count * seconds
    return count


def test_a_program_that_sleeps_is_late_at_once():
    assert granted([0.004]) == 0


def test_a_program_that_had_its_time_is_late_at_once():
    assert granted([2.97]) == 0


def test_a_program_that_shared_its_core_gets_more_until_it_has_had_its_time():
    assert granted([1.0, 2.0, 3.0]) == 2


def test_a_program_that_falls_asleep_later_is_late_then():
    assert granted([1.0, 1.01]) == 1


def test_where_nobody_can_tell_a_deadline_is_a_deadline():
    assert granted([float("inf")]) == 0


def test_every_step_begins_anew():
    patience = DeadlineExtension(lambda: 1.0)
    assert patience.granted(5.0) == 0.0
    assert patience.grant(3.0)
    assert patience.granted(5.0) == 3.0
    assert patience.granted(9.0) == 0.0
