"""What a report says, as plain values."""
