"""Reads and writes bundles of device code, and finds them in files."""
