"""rocwheel: turns ROCm builds into Python packages that install small, load anywhere, and run on the GPUs people have."""

__all__ = ["__version__"]

__version__ = "0.1.0"
