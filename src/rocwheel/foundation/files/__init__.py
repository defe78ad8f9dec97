"""Files: given, read while others may write, and written so that no half of one is ever seen."""
