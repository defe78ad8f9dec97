"""Reads and writes kpack archives of device code, and the markers in host files that refer to them."""
