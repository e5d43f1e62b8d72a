"""Metrics: their versions, the rules for changing them, formulas, and the errors of the
catalogue.
"""
