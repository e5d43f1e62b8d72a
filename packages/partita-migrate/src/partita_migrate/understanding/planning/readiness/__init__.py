"""Checks that this server can do what a migration needs: a backup, following its changes, and
statement statistics.

Each failed check says what to change. If the user of the connection may not look at something, the
check says so and counts as failed.
"""
