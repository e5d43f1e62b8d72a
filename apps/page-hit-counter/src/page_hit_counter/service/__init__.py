"""The service as running processes, the stream and tables that they share, and who may use it."""
