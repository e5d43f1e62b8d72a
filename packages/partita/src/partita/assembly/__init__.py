"""The one place that picks a storage engine and wires the parts of a server together."""
