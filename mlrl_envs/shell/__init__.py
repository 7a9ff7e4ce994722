"""PettingZoo wrapper of task families, and batched stepping."""
