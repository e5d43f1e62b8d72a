"""The counter: counts the visits of the stream in tumbling windows, exactly once.

`counter` is the loop: `stream` reads records, `tally` counts them, and `checkpoints` saves counts
and position, so that a counter can be killed at any moment.
"""
