"""The listener, the dispatch of operations, and what they report about themselves."""
