"""Most-popular lists, computed from closed windows, with their HTTP API and the dashboard."""
