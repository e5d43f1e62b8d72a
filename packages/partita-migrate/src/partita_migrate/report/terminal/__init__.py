"""What the commands print for people: each stage in a screen, the rest is in its files."""
