"""What only one kind of server does: its session, its errors, its catalog and its types."""
