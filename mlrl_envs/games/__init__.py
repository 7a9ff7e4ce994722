"""Games for agents that take turns, compete, or talk; one file for each game."""
