"""Hostile requests: a corpus, a fuzzer, and a client without credentials that measures its cost."""
