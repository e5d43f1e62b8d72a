"""The counter: counts the visits of the stream in tumbling windows, exactly once.

`counter` is the loop: `visit_stream` reads records, `tally` counts them in `tumbling_windows`, and
`counter_checkpoints` saves counts and position, so that a counter can be killed at any moment.
"""
