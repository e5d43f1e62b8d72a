"""What makes, changes and describes tables, and everything that is set for them."""
