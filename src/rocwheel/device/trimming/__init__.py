"""Libraries made smaller by taking out the space that device code left."""
