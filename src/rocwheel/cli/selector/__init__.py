"""The commands about the ``rocm`` distribution, which chooses packages."""
