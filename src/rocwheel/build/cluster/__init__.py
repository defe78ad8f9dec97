"""From a plan to distributions on the machines of a cluster."""
