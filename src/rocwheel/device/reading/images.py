"""DLLs and programs of Windows among files whose device code is edited: damage, and signatures."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from rocwheel.binary.kind import is_pe
from rocwheel.binary.pe.facts import read_pe
from rocwheel.binary.pe.header import bits_of_pe

if TYPE_CHECKING:
    from rocwheel.binary.pe.rewrite import SignedFileError
    from rocwheel.core.reading import Data

__all__ = ["is_signed_image", "require_sound_image", "signed_warning"]

_SUFFIXES: Final = frozenset({".dll", ".exe", ".pyd"})


def require_sound_image(data: Data, *, name: str) -> None:
    """Raise `PeError` for a damaged DLL or program, as `read_pe` does for all that inspects one.

    That is a PE file by its headers, or a file that begins like one and is called so: other files may begin with
    ``MZ``, too. Files of 32 bits, which have no device code, are not read.
    """
    bits = bits_of_pe(data)
    if bits == 64 or (bits is None and is_pe(data) and PurePath(name).suffix.lower() in _SUFFIXES):
        read_pe(data, name=name)


def is_signed_image(data: Data, *, name: str) -> bool:
    """Return whether ``data`` is a DLL or program of 64 bits with certificates; raise `PeError` for a damaged one."""
    return bits_of_pe(data) == 64 and read_pe(data, name=name).certificate is not None


def signed_warning(error: SignedFileError) -> str:
    """Return the warning about a signed file that is left as it is among others."""
    return f"{error.source}: {error.found}, so its device code stays as it is. {error.remedy}"
