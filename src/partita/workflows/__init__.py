"""Workflows: Amazon States Language machines, run durably over the wire of a database."""
