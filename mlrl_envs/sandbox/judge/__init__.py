"""Judge process: runs the trusted tests and records their verdicts."""
