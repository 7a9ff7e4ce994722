"""The PettingZoo wrapper around task families, and batched stepping."""
