"""What the monitor shows: pure functions from runs and episodes to markup."""
