"""Expressions of both query languages, JSONPath and JSONata."""
