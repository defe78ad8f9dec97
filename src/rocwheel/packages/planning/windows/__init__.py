"""What plans for Windows have, and what may be wrong with them."""
