"""Encryption at rest. To seal means to encrypt and authenticate, bound to a name or storage key.

A server without `--encryption-key` imports nothing of this package.
"""
