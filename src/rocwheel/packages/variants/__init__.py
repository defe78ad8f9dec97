"""Wheel variants (a draft) of packages that exist for each GPU: one name, of which installers take the right wheel."""
