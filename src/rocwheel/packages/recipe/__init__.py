"""Recipes: which packages exist and what goes into them."""
