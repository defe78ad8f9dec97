"""Splits fat binaries into a host part and a part for each GPU target, and joins these parts again."""
