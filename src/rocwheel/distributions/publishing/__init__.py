"""Distributions and the index of them on a store, where others publish at the same time."""
