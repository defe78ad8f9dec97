"""ELF files: bytes to values."""
