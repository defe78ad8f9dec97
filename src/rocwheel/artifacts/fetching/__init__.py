"""Fetching of artifact archives from a store: which of them, with which checksums, and the transfer itself."""
