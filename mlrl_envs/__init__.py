"""Multi-agent text environments."""
