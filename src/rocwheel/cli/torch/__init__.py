"""``rocwheel torch``: the group of the commands about PyTorch."""
