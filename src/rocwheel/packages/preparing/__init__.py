"""Artifacts before they are planned: code for more GPUs, split libraries, compressed archives."""
