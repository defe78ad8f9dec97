"""Compressed offload bundles (CCOB): header, payload, content, and which ROCm reads which version."""
