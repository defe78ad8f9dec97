"""Kpack archives of device code, their markers in host files, and who points where."""
