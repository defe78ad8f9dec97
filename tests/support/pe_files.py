"""DLLs and programs of Windows, made byte by byte: with any imports, with certificates, and without any tool."""

from __future__ import annotations

import struct

__all__ = ["AMD64", "ARM64", "pe_file", "with_certificate"]

AMD64, ARM64 = 0x8664, 0xAA64
_BASE = 0x1000
"""Where the only section is in memory."""
_HEADERS = 0x200
_CERTIFICATES = 24 + 112 + 4 * 8
"""Where the PE header has the place of certificates."""


class _Section:
    """Bytes with addresses."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, content: bytes, alignment: int = 8) -> int:
        """Append bytes, and return their address."""
        self.data += bytes(-len(self.data) % alignment)
        at = _BASE + len(self.data)
        self.data += content
        return at

    def add_text(self, text: str) -> int:
        return self.add(text.encode() + b"\0")

    def add_thunks(self) -> int:
        """Append a table that imports one function."""
        return self.add(struct.pack("<QQ", self.add(b"\0\0f\0"), 0))


def pe_file(
    name: str = "demo.dll",
    *imports: str,
    delayed: tuple[str, ...] = (),
    unused: tuple[str, ...] = (),
    machine: int = AMD64,
    is_dll: bool = True,
    more: bytes = b"",
    section_name: str = ".rdata",
    function: str = "f",
) -> bytes:
    """Return a file of 64 bits that takes ``f`` from each of ``imports``, and exports ``function`` as a DLL ``name``.

    It names the DLLs of ``unused`` without a function. ``more`` is data in its section.
    """
    section = _Section()
    section.add(more or b"\0")
    tables = {0: _exports(section, name, function) if is_dll else (0, 0)}
    tables[1] = _imports(section, imports, unused) if imports or unused else (0, 0)
    tables[13] = _delay_imports(section, delayed) if delayed else (0, 0)
    content = bytes(section.data).ljust(-(-len(section.data) // 512) * 512, b"\0")
    image_size = _BASE + -(-len(section.data) // 4096) * 4096
    traits = 0x2022 if is_dll else 0x22
    head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40) + b"PE\0\0"
    head += struct.pack("<HHIIIHH", machine, 1, 0, 0, 0, 240, traits)
    head += struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, len(content), 0, 0, _BASE)
    head += struct.pack("<QIIHHHHHHIIIIHH", 1 << 32, 4096, 512, 6, 0, 0, 0, 6, 0, 0, image_size, _HEADERS, 0, 3, 0x160)
    head += struct.pack("<QQQQII", 1 << 20, 4096, 1 << 20, 4096, 0, 16)
    head += b"".join(struct.pack("<II", *tables.get(number, (0, 0))) for number in range(16))
    head += struct.pack(
        "<8sIIIIIIHHI", section_name.encode(), len(section.data), _BASE, len(content), _HEADERS, 0, 0, 0, 0, 0xC0000040
    )
    return head.ljust(_HEADERS, b"\0") + content


def _exports(section: _Section, name: str, exported: str) -> tuple[int, int]:
    function = section.add(b"\xc3")
    functions, names = (
        section.add(struct.pack("<I", function)),
        section.add(struct.pack("<I", section.add_text(exported))),
    )
    fields = (0, 0, 0, 0, section.add_text(name), 1, 1, 1, functions, names, section.add(struct.pack("<H", 0)))
    return section.add(struct.pack("<IIHHIIIIIII", *fields)), 40


def _imports(section: _Section, dlls: tuple[str, ...], unused: tuple[str, ...]) -> tuple[int, int]:
    rows = [(section.add_thunks(), 0, 0, section.add_text(dll), section.add_thunks()) for dll in dlls]
    rows += [(section.add(bytes(8)), 0, 0, section.add_text(dll), section.add(bytes(8))) for dll in unused]
    table = b"".join(struct.pack("<IIIII", *row) for row in [*rows, (0,) * 5])
    return section.add(table), len(table)


def _delay_imports(section: _Section, dlls: tuple[str, ...]) -> tuple[int, int]:
    rows = [
        (1, section.add_text(dll), section.add(bytes(8)), section.add_thunks(), section.add_thunks(), 0, 0, 0)
        for dll in dlls
    ]
    table = b"".join(struct.pack("<IIIIIIII", *row) for row in [*rows, (0,) * 8])
    return section.add(table), len(table)


def with_certificate(data: bytes, content: bytes = bytes(8)) -> bytes:
    """Return a DLL of 64 bits with a certificate behind it, as signing tools append one."""
    changed = bytearray(data.ljust(-(-len(data) // 8) * 8, b"\0"))
    size = -(-(8 + len(content)) // 8) * 8
    (header,) = struct.unpack_from("<I", data, 0x3C)
    struct.pack_into("<II", changed, header + _CERTIFICATES, len(changed), size)
    return bytes(changed) + (struct.pack("<IHH", 8 + len(content), 0x200, 2) + content).ljust(size, b"\0")
