"""The service as running processes, and the stream and tables that they share."""
