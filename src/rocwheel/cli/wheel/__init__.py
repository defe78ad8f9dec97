"""``rocwheel wheel``: its options, which the commands for JAX share."""
