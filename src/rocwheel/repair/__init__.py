"""How finished wheels are repaired: run paths, requirements, platform tags, metadata."""
