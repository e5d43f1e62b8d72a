"""The interpreter: runs a machine step by step, without I/O."""
