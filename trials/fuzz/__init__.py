"""Fuzzing of every parser of foreign bytes: ``make fuzz``."""
