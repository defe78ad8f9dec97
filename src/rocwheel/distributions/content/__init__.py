"""The bytes of one member, readable by range any number of times."""
