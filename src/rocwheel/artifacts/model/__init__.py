"""What an artifact is: its name, its paths, its manifests."""
