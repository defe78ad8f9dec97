"""Wheels and sdists as formats: archives, metadata, RECORD, tags, and packing on all cores."""
