"""Basics that every other package may use."""
