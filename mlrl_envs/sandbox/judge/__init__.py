"""The judge process, which runs the trusted tests."""
