"""``rocwheel artifacts``: the group of the commands about SDK artifacts."""
