"""Schemas and data that several packages' tests use."""
