"""Work on the machines of a cluster."""
