"""Pure functions of the algorithms; the tests compare each with a plain-Python reference."""
