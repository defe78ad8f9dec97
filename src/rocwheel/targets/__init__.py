"""Defines GPU targets: the known targets, the GPUs that run their code, and their spelling in each tool."""
