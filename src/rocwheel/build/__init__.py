"""Builds distributions from artifacts: recipe, plan, and build."""
