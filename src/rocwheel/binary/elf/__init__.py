"""Reads ELF files into values."""
