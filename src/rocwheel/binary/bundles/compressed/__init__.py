"""Compressed offload bundles (CCOB): header, payload and content."""
