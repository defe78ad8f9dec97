"""A plan made from artifacts and a recipe."""
