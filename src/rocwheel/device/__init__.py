"""Device code as users handle it: what files have, and how it is changed."""
