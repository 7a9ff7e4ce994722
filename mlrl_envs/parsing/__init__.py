"""Parsers of model text: code, numbers and syntax trees."""
