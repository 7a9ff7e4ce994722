"""Worker processes: start, supervision, deadlines and verdicts."""
