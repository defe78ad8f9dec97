"""What every floor may use."""
