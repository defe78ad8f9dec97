"""Merges the selectors of several builds for different GPUs or platforms."""
