"""Learning curves of language models on texts and mathematics, and their baselines."""
