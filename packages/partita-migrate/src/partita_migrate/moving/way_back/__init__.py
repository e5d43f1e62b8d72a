"""The way back: after a cutover, what applications write at the target becomes rows of the
source."""
