"""What differs between two wheels, builds, trees or environments, and what of it breaks those who use them."""
