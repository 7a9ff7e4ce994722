"""Published experiments on a GPU machine: settings, runs within a budget, and a table."""
