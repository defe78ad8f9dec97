"""What distributions require: of others, of Python and of machines."""
