"""Wheels assembled from build outputs by a description."""
