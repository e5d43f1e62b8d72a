"""Worker processes of a move, which use more than one core."""
