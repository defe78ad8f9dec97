"""Finds the files of an SDK: artifacts, archives, and importers."""
