"""Model execution: decoding, log-probabilities, KV caches, kernels and devices."""
