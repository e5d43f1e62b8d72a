"""The target: its client, the items that it accepts, and the position that each item carries."""
