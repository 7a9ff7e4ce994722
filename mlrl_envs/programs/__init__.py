"""Assembly of the answers of several agents into one program."""
