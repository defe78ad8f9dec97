"""``rocwheel targets``: the group of the commands about GPU targets."""
