"""Makes a page about builds, indexes, artifacts, or environments: where the bytes are, and for which GPUs."""
