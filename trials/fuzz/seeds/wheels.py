"""Good files of wheels, and names of them, that harnesses begin with."""

from __future__ import annotations

import json

from tests.support.variant_wheels import variant_document

__all__ = ["BILL", "ENTRY_POINTS", "LITERALS", "METADATA", "NAMES", "RECORD", "REQUIREMENTS", "VARIANTS", "WHEEL"]

METADATA = b"""Metadata-Version: 2.4
Name: rocm-sdk
Version: 7.10.0
Requires-Dist: rocm-sdk-core==7.10.0 ; sys_platform == "linux"
Provides-Extra: devel
License-Expression: MIT
License-File: LICENSE
Description-Content-Type: text/markdown

# ROCm
"""
"""Of a wheel."""
WHEEL = b"Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: false\nTag: py3-none-manylinux_2_28_x86_64\n"
"""Of the same wheel."""
RECORD = (
    b'rocm_sdk/__init__.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n"a,b.py",,12\nx.dist-info/RECORD,,\n'
)
"""Of a wheel, one of whose paths has a comma."""
ENTRY_POINTS = b"[console_scripts]\nrocm-sdk = rocm_sdk._cli:main\n\n[gui.x]\na=b\n"
"""Of a wheel."""
BILL = (
    b'{"bomFormat":"CycloneDX","metadata":{"component":'
    b'{"bom-ref":"rocm@1.0","name":"rocm","version":"1.0","purl":"pkg:pypi/rocm@1.0"}},'
    b'"components":[{"name":"zlib","purl":"pkg:generic/zlib","externalReferences":[{"type":"license","url":"LICENSE"}]}],'
    b'"dependencies":[{"ref":"rocm@1.0"}]}'
)
"""Of materials, CycloneDX."""
VARIANTS = json.dumps(variant_document("gfx942", ["gfx942"])).encode()
"""The file ``variant.json`` of one wheel."""
REQUIREMENTS = [
    b"a @ https://host/a.zip ; python_version < '3.10'",
    b"a ; platform_machine == 'aarch64' or (sys_platform == 'win32' and python_version >= '3.12')",
    b"a ; python_version < '3.9'",
    b"a ; python_version < '3.11' and platform_machine == 'x86_64' and sys_platform == 'darwin'",
]
"""With markers about what environments differ in."""
NAMES = [
    b"rocm_sdk-7.10.0-1-py3-none-manylinux_2_28_x86_64.whl",
    b"rocm-7.10.0rc1.tar.gz",
    b"x-1.0-py2.py3-none-any-gfx942.whl",
]
"""Of wheels and of an sdist."""
LITERALS = b'VERSION = "7.10.0"\nFAMILIES = {"gfx94X": {"targets": ["gfx942"], "platforms": ["linux"]}}\nN = -1\n'
"""Assignments of an SDK's ``_build_info.py``."""
