"""Compares the tables of rocwheel with their public sources, before each release."""
