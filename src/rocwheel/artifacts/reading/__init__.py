"""Artifact folders and archives, found and opened."""
