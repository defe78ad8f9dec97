"""Creates a page about builds, indexes, artifacts, or environments that shows file sizes and supported GPUs."""
