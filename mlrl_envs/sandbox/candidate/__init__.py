"""Candidate process: runs the untrusted program."""
