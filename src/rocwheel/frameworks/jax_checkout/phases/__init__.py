"""What each phase changes."""
