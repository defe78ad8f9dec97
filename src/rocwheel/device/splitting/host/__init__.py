"""ELF files without the device code that was theirs, and back: one pass over each, no address changes."""
