"""Libraries taken apart for runtimes without kpack: one with code for all GPUs, and a whole one for each target."""
