"""Zip archives: reading and writing."""
