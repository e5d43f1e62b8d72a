"""Copies of data outside of a server: backups, copies between storages, and tables in files.

All copies of a whole database have the same two ends: a snapshot that is read, of a data folder, of
PostgreSQL or of a backup, and a target that it is copied into (`storage_copy/snapshot_copy.py`).
"""
