"""What distributions say of themselves: METADATA, and the licences in it."""
