"""Reads and writes binary file formats: ELF, PE, run paths, stubs, and device code."""
