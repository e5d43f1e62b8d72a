"""The migration folder, and how stages report their progress."""
