"""A suite of small games."""

from mlrl_learners.bench.suite import suite_of

GAMES = {
    "mlrl/kuhn-v0": {},
    "mlrl/nim-v0": {"max_pile": 1, "num_piles": 2},
    "mlrl/matrix-v0": {"rounds": 2},
    "mlrl/connect-four-v0": {"rows": 4, "columns": 5, "connect": 3},
    "mlrl/hanabi-v0": {"variant": "small"},
}


def suite(*env_ids, seeds=(0,)):
    entries = [
        {"env": env_id, "split": "sample", "tasks": 2, "options": GAMES[env_id]}
        for env_id in env_ids
    ]
    budget = {"turns": None, "tokens": 8}
    return suite_of(
        {
            "name": "mine",
            "version": 0,
            "summary": "games",
            "seeds": list(seeds),
            "budget": budget,
            "entries": entries,
        }
    )
