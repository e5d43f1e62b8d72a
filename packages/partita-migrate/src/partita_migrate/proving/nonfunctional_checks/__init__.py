"""What a design does under load and after a loss: concurrent writes, stated rates and peaks,
restores."""
