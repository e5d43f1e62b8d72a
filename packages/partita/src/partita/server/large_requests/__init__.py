"""Requests that would keep all others waiting are decided by another process."""
