"""The candidate process, which runs the untrusted program."""
