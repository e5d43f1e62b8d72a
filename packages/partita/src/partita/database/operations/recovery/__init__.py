"""Backups, point-in-time recovery, exports and imports."""
