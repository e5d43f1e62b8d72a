"""Most-popular lists out of closed windows, the HTTP API that serves them, and the dashboard."""
