"""Stage `follow`: transactions of the source's log become writes of the target, while lag and
errors are sampled."""
