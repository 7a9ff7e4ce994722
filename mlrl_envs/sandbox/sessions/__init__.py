"""Sessions: interpreters that keep their state between calls, with a directory of files."""
