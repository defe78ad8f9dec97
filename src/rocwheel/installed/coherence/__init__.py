"""Whether packages that use one another carry code for the same GPUs."""
