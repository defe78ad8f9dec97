"""rocwheel: turns ROCm builds into Python packages that are small to install and load anywhere.

`rocwheel.api` is the public part. All other modules are private.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"
