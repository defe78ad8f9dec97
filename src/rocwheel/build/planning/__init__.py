"""From artifacts and a recipe to a plan."""
