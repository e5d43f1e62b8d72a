"""What both services tell about themselves: figures for Prometheus, and alarms."""
