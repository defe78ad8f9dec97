"""Independent parsers that harnesses hold answers against."""
