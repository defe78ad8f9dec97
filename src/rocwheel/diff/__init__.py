"""Finds differences between two wheels, builds, trees, or environments, and identifies those that break users."""

from __future__ import annotations
