"""Distributions as files: wheels, sdists and package indexes, and the archives that they are made of."""
