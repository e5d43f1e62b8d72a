"""Requests that wait are run together: what they need is fetched for all, and written for all."""
