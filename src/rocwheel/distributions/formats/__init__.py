"""Wheels, sdists, metadata, RECORD, requirements, markers and tags."""
