"""``rocwheel jax``: the group of the commands about JAX."""
