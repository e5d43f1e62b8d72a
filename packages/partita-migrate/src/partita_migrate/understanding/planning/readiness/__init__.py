"""Checks whether the server allows what a migration needs: a backup, following changes, statistics.

Each failed check says what to change. What the user of the connection may not look at is reported
as unknown.
"""
