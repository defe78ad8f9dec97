"""Compares files with what a manifest, a RECORD or the pages of an index say of them."""

from __future__ import annotations
