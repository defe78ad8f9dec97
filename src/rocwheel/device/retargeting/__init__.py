"""Code for more GPUs in whole trees: fat libraries, kpack archives, and kernel files that are looked up by name."""
