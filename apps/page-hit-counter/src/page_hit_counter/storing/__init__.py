"""Stores windows after they close; the consumer spreads the writes over time."""
