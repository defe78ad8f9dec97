"""What distributions say of themselves: METADATA, and the licenses in it."""
