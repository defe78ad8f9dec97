"""Writes package indexes as static files, publishes them to stores, reads third-party indexes, and mirrors them."""
