"""``rocwheel lock``: a lock file for given GPUs."""
