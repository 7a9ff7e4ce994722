"""Episodes and rollout trees: an actor plays environments."""
