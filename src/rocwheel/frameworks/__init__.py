"""Support for frameworks that use the SDK: link options, build commands, initializers, and wheels."""
