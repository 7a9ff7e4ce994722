"""Speed benchmarks, one script each; a script measures both sides in one run."""
