"""From artifacts to distributions: recipe, plan, build."""
