"""Defines GPU targets: which exist, which code runs on which GPU, and how each tool spells them."""
