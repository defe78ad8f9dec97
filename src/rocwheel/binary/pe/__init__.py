"""The Portable Executable format: DLLs and programs of 64-bit Windows."""
