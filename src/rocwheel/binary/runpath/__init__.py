"""Editing the run path of an ELF file."""
