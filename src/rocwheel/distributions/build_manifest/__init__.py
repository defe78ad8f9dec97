"""The manifest of a build: what went in, how it was built, and what came out."""
