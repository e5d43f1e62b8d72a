"""The parts of an installation: compiled modules, optional packages, and the partner packages of
this repository.
"""
