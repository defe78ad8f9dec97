"""One selector for several builds: for other GPUs, or for other platforms."""
