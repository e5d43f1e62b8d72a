"""Requests that would keep all others waiting: `worker.py` decides them in a process of its own."""
