"""Tools that agents call in their messages: reading calls, and running them."""
