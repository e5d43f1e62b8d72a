"""The runtime of functions: their processes, pools of them, and their logs."""
