"""What a run notes for the next one."""
