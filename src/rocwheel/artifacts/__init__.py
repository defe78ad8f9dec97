"""Finds the files of an SDK; contains the modules for artifacts, archives, and importers."""
