"""File formats, bytes to values and back: ELF, run paths, stubs, device code."""
