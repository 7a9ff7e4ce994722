"""Measures of English prose that several rewards share."""
