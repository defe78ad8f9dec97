"""rocwheel: turns ROCm builds into small Python packages that find their libraries.

`rocwheel.api` is the public part. All other modules are private.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
