"""The way back: what applications write at the target after a cutover becomes rows again."""
