import pytest

from benchmarks.perf.memory import full_peak, rows, rows_beside

FULL = {2: {"peak_rss_mib": 5000.0, "weights_an_agent": 2.0**20}}
SHARED = {2: {"peak_rss_mib": 1000.0}, 4: {"peak_rss_mib": 1250.0}}


def test_a_row_sets_a_team_with_adapters_beside_one_with_full_weights():
    first, second = rows(FULL, SHARED)
    assert (first["ours"], first["peer"], first["ratio"]) == (1000.0, 5000.0, 5.0)
    assert first["peer_name"] == "full weights"
    assert second["peer_name"] == "full weights, reckoned"


@pytest.mark.parametrize(("agents", "more"), [(2, 0), (3, 16), (8, 96), (1, -16)])
def test_what_is_not_measured_is_reckoned_from_sixteen_bytes_a_weight(agents, more):
    assert full_peak(FULL, agents) == 5000.0 + more


def test_nothing_is_set_beside_where_nothing_was_measured():
    assert all("peer" not in row for row in rows({}, SHARED))


def test_every_team_stands_beside_the_peers_team_of_two():
    teams = {"full": FULL[2], "shared": SHARED[2]}
    full, shared = rows_beside(teams, {"peak_rss_mib": 8000.0})
    assert (full["ours"], full["peer"], full["ratio"]) == (5000.0, 8000.0, 1.6)
    assert (shared["what"], shared["ratio"]) == ("peak memory, shared", 8.0)
