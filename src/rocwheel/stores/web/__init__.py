"""Web servers: their pages and files, the listings of their folders, and a store of them."""
