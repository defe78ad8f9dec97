"""Reads ELF files and returns their data as values."""
