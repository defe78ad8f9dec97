"""Where files come from: catalogue, archives, importers."""
