"""What a repair changes in a wheel's metadata: requirements, their pins, and tags."""
