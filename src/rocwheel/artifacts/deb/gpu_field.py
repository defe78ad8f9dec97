"""The control field by which a Debian package names its GPUs; here, since texts are searched for it, too."""

from __future__ import annotations

__all__ = ["GPU_FIELD"]

GPU_FIELD = "X-ROCm-GPU-Architecture"
"""Names the GPUs that a package is built for, separated by spaces (Debian's pkg-rocm-tools)."""
