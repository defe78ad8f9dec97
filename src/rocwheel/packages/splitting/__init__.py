"""Artifacts before they are packed: the device code of libraries goes to artifacts of its targets."""
