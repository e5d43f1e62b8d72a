"""Explains a design: its choices, risks, foreign keys, and the columns that are left out."""
