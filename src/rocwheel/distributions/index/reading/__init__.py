"""Reading of the folders of distributions."""
