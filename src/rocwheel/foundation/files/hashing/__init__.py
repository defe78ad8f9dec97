"""Hashes of files and of their parts."""
