"""Code objects for AMD GPUs: target ids, headers, notes and kernel metadata."""
