"""The commands that meet faults."""
