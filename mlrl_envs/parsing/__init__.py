"""Parsers of model output: code, numbers and syntax trees."""
