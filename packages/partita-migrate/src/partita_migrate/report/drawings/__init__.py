"""Drawings of the report: the entity diagram, charts, and the tables of a model."""
