"""How finished wheels are mended."""
