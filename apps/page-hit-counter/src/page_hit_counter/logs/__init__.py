"""Logs that people ask with SQL: those of a load balancer, and lines of JSON."""
