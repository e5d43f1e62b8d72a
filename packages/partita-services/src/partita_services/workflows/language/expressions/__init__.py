"""Expressions of both query languages: JSONPath with intrinsic functions, and JSONata."""
