"""Clients that send the load: wrk, or raw sockets where wrk cannot be installed."""
