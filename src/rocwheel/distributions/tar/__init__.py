"""Tars of strangers: read within bounds of memory, and to their very end."""
