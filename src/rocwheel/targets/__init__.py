"""Which GPUs exist, which code runs on which, how each tool spells them."""
