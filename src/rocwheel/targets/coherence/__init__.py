"""Whether packages agree on the GPUs that they are for."""
