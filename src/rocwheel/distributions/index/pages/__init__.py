"""The pages of an index as bytes, and what stands on them."""
