"""Handles the wheel and sdist formats: archives, metadata, RECORD, tags, and parallel packing."""
