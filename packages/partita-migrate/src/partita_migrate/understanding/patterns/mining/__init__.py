"""Access patterns mined from what a database has really run.

What the server kept (`servers`, `logs`) is brought into one form in which only the shape counts
(`texts`), parsed once for each shape (`understanding`), and merged into named patterns (`merging`).
What is not understood is listed with its reason, never dropped.
"""
