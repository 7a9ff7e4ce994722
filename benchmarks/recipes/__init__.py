"""Published recipes of training beside the defaults, on toys and on language."""
