"""The development tree ``_rocm_sdk_devel``: made from an archive on first use, then kept in step with other packages.

Frameworks and the programs of rocm-sdk-core import `get_devel_root` from here.
"""

from __future__ import annotations

from .place import DevelError
from .root import get_devel_root, restore_device_links

__all__ = ["DevelError", "get_devel_root", "restore_device_links"]
