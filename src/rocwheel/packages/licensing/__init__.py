"""Under which licenses the parts of a package are, and where their texts are."""
