"""Makes ``python -m rocm_sdk`` the same as ``rocm-sdk``."""

from __future__ import annotations

from ._cli import main

if __name__ == "__main__":
    main()
