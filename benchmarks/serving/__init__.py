"""Load on servers of environments and of policies."""
