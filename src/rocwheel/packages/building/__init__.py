"""From a plan to distributions on disk."""
