"""The state machine that copies one metric at a time, its Lambda functions, and the run that starts
executions.
"""
