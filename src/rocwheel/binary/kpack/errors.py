"""What is wrong with a kpack archive or a marker, and where."""

from __future__ import annotations

from rocwheel.binary.code_objects.errors import DeviceCodeError

__all__ = ["KpackError"]


class KpackError(DeviceCodeError):
    """A kpack archive, or a marker that names one, that can't be used or made."""
