"""Compares files with a manifest, a RECORD, or the pages of an index."""

from __future__ import annotations
