"""Contains the archive of the ROCm development files until ``rocm_sdk`` expands it next to this package.

This file is the lock of that expansion.
"""
