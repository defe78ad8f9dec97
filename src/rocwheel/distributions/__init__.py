"""The formats of distributions: wheels, sdists, RECORD, metadata, tags."""
