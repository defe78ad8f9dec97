"""Repairs finished wheels: run paths, requirements, platform tags, and metadata."""
