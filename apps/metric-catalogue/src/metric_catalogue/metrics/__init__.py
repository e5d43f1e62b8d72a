"""What a metric is: its versions, the rules for changing it, formulas, and the errors of the
catalogue.
"""
