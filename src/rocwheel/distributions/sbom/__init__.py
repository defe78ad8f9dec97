"""Software bills of materials of distributions."""
