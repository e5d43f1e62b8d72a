"""Rules about intentional differences, where the service differs from DynamoDB Local.

A rule gets a request and what both answered. It changes the answers, so that what is known to be
otherwise is no longer in them, or it accepts that they are different. Each has its reason and its
source. They are applied in the order of RULES in `intended.py`.
"""
