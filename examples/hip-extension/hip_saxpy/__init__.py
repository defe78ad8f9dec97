"""Adds a multiple of one array to another, on the GPU."""

from hip_saxpy._saxpy import saxpy

__all__ = ["saxpy"]
