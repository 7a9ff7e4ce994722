"""Trial of the games of TextArena."""
