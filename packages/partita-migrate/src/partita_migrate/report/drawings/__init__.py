"""Draws the report's figures: the entity diagram, charts, and the tables of a model."""
