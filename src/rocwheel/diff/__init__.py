"""Finds what differs between two wheels, builds, trees or environments, and which differences break users."""

from __future__ import annotations
