"""Splitting and joining folders on disk."""
