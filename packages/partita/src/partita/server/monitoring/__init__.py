"""Monitoring: metrics and pages of the server, and the commands that show them in a terminal."""
