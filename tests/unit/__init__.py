"""Parts by themselves, in the folders of the source."""
