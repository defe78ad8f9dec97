"""Turning release candidates into a release, without packing what they hold again."""
