"""What wrappers of device code say, and the relocations that decide it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import msgspec

from rocwheel.binary.bundles.wrappers import pack_wrapper_head
from rocwheel.binary.code_objects import Place
from rocwheel.binary.elf.relocations import INFO_AT, pack_relative
from rocwheel.core.patch import Replacement
from rocwheel.device.splitting.host.errors import NotSplittableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rocwheel.binary.bundles.wrappers import FatBinary, Wrapper
    from rocwheel.binary.elf.header import ElfBytes

__all__ = ["WrapperContent", "require_known_machine", "write_image_wrappers", "write_wrapper"]

_ADDRESS = struct.Struct("<Q")
_NUMBER = struct.Struct("<I")
_POINTER_AT, _INDEX_AT = 8, 16


class WrapperContent(msgspec.Struct, frozen=True):
    """What a wrapper is to say: the address of its bundle, or that of its marker and the index in archives."""

    target: int
    index: int = 0
    is_kpack: bool = False


def require_known_machine(name: str, machine: int) -> None:
    """Raise `NotSplittableError` for the ``machine`` of a file whose relocations are not known."""
    if pack_relative(machine, 0) is None:
        found = f"a file for machine {machine}"
        raise NotSplittableError(Place(name), found, expected="x86-64 (62), AArch64 (183) or 64-bit POWER (21)")


def write_wrapper(source: ElfBytes, machine: int, wrapper: Wrapper, content: WrapperContent) -> Iterator[Replacement]:
    """Yield what gives ``wrapper`` its ``content``, at its own place and where its pointer is decided.

    A relocation that names a symbol becomes one by an address.
    """
    pointer, in_place = wrapper.pointer, wrapper.offset + _POINTER_AT
    yield Replacement.of(wrapper.offset, pack_wrapper_head(is_kpack=content.is_kpack))
    yield Replacement.of(wrapper.offset + _INDEX_AT, _NUMBER.pack(content.index))
    if pointer.named_at is not None and (relative := pack_relative(machine, content.target)) is not None:
        yield Replacement.of(pointer.named_at + INFO_AT, relative)
    elif pointer.stored_at is not None and pointer.stored_at != in_place:
        yield Replacement.of(pointer.stored_at, _ADDRESS.pack(content.target))
    # Linkers may leave zeros where a relocation has the address, but not where there is none.
    if pointer.stored_at == in_place or source.unpack(_ADDRESS, in_place, "a pointer") != (0,):
        yield Replacement.of(in_place, _ADDRESS.pack(content.target))


def write_image_wrappers(fat: FatBinary, contents: Iterable[WrapperContent]) -> tuple[Replacement, ...]:
    """Return what gives the wrappers of a DLL or program their ``contents``, in their order.

    A pointer stands in its place; targets count from zero in memory, as the linker meant the image to be placed.
    """
    return tuple(
        Replacement.of(wrapper.offset + at, data)
        for wrapper, content in zip(fat.wrappers, contents, strict=True)
        for at, data in (
            (0, pack_wrapper_head(is_kpack=content.is_kpack)),
            (_POINTER_AT, _ADDRESS.pack(content.target)),
            (_INDEX_AT, _NUMBER.pack(content.index)),
        )
    )
