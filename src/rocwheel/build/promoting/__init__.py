"""Promotes release candidates to a release without packing their contents again."""
