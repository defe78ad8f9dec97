"""Device code changed: compressed, pruned and retargeted."""
