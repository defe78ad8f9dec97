"""A plan carried out: distributions written."""
