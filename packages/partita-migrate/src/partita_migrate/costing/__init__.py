"""Estimates a design: capacity units, storage, and the monthly bill (stage `estimate`)."""
