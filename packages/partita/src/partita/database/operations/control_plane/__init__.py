"""Creating, changing and describing tables, and all of their settings."""
