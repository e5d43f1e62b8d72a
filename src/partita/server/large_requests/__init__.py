"""Requests that would keep all others waiting: decided in a process of their own, as drafts."""
