"""Workflows: Amazon States Language machines, run durably on a database over the wire."""
