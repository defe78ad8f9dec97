"""Plans distributions from artifacts and a recipe."""
