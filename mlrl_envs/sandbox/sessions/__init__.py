"""Long-lived interpreters with files, for tools."""
