"""The ``rocm`` distribution, which requires the others: an sdist that chooses for a machine, or a wheel with extras."""
