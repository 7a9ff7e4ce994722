"""Pure functions behind the algorithms; each has a slow plain-Python twin in its test."""
