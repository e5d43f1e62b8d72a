"""Turns rows into items by the design, and makes example and placeholder items."""
