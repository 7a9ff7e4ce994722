"""HTML pages of the monitor, as pure functions of runs and episodes."""
