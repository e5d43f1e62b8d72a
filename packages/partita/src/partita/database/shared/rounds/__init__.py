"""Rounds: waiting requests are run together, over one fetch, and their writes share a commit."""
