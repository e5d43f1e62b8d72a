"""Monitoring: figures that all processes of the service share, Prometheus metrics, alarms, and SQL
queries over logs."""
