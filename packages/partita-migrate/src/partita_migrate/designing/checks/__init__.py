"""Whether a model can be built, keeps what the source keeps, and serves every pattern.

    references   names that do not exist
    limits       what the service allows
    keeping      what the source keeps: columns and unique constraints
    serving      what the patterns need, and how hot it makes a key

An error means that the model must not be used, a warning that somebody should know.
"""
