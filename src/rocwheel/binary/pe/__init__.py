"""Reads and edits Portable Executable files: DLLs and programs for 64-bit Windows."""
