"""Finds differences between two wheels, builds, trees, or environments, and identifies breaking changes."""

from __future__ import annotations
