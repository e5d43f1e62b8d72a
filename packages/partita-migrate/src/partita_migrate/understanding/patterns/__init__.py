"""Access patterns: the reads and writes of an application, written by people or mined."""
