"""Tests of `rocwheel.device.inspection`."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given

from rocwheel.device.inspection import inspect_paths
from tests.support.damage import damaged
from tests.support.places import FIXTURES


def wheel_of(*names: str, method: int) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as wheel:
        for name in names:
            wheel.write(FIXTURES / name, f"pkg/{Path(name).name}")
    return stream.getvalue()


WHEELS = [
    wheel_of("v22/libtwo.ccob.so", method=zipfile.ZIP_STORED),
    wheel_of("v22/saxpy.ccob.hipfb", "elf/libanswer.so.1", method=zipfile.ZIP_DEFLATED),
]


@given(damaged(WHEELS))
def test_damage_in_a_wheel_is_reported_with_its_location(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "pkg-1-py3-none-any.whl"
        path.write_bytes(content)
        found = list(inspect_paths([path], deep=True))
        assert all(facts.path.startswith(str(path)) for facts in found)
        errors = [str(facts.error) for facts in found if facts.error]
        assert all(error.startswith(str(path)) for error in errors)
        assert all(facts.error or facts.elf or facts.device for facts in found)
