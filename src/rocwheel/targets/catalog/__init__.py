"""Which GPUs, families and releases exist."""
