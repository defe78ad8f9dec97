"""Archives of artifacts: reading, writing and extracting them."""
