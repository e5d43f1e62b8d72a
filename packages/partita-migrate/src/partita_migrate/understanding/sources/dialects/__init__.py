"""Modules for one kind of server each: its session, its errors, its catalog and its types."""
