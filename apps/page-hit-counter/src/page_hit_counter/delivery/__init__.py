"""Delivers visits by files, as in chapters 4.8 and 5.2 of the thesis behind this service.

processor -> stream of events -> delivery stream -> bucket -> topic -> function -> counter
"""
