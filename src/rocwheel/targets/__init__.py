"""Defines GPU targets: the known targets, the GPUs that run their code, and their names in each tool."""
