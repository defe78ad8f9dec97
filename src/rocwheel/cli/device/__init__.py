"""``rocwheel device``: the group of the commands about device code."""
