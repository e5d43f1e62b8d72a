"""Encryption at rest: an engine around any other, whose values are sealed and whose keys are kept.

Nothing here is imported by a server without `--encryption-key`.
"""
