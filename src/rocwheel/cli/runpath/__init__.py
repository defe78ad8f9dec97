"""``rocwheel runpath``: the group of the commands about run paths."""
