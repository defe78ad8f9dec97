"""Inspects and edits the device code in files, folders, and wheels."""
