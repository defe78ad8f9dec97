"""What an index will hold, before anything is written."""
