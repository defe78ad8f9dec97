"""Bundles of device code: formats, readers and where files hold them."""
