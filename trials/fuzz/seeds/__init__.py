"""What harnesses begin with: good inputs, of each kind of their format."""
