"""Where files come from: catalog, archives, importers."""
