"""What is installed or would be, and what a loader finds in it."""
