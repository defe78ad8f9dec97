"""Which GPUs a machine has, and what keeps a user from them: sysfs, environment variables, devices, permissions."""
