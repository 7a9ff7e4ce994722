"""Statistics of episodes: means, bootstrap intervals and comparisons."""
