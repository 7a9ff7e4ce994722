"""Clients of language models that environments ask; the only place that talks to models."""
