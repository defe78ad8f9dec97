"""Members compressed on all cores and written in order."""
