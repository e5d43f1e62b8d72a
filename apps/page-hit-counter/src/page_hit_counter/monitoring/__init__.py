"""How the service is doing: figures that all its processes share, Prometheus, and alarms."""
