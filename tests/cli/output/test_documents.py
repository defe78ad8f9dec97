"""JSON documents, led by their schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from rocwheel.cli.output import print_json

if TYPE_CHECKING:
    import pytest


class _Facts(msgspec.Struct, frozen=True):
    path: str
    targets: tuple[str, ...]


def test_json_is_one_object_led_by_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("device", 1, _Facts("libfat.so", ("gfx906", "gfx1030")))
    printed = capsys.readouterr()
    assert printed.err == ""
    assert list(json.loads(printed.out).items()) == [
        ("schema", "rocwheel.device/1"), ("path", "libfat.so"), ("targets", ["gfx906", "gfx1030"]),
    ]  # fmt: skip


def test_json_keeps_text_of_any_language(capsys: pytest.CaptureFixture[str]) -> None:
    print_json("device", 1, _Facts("bibliothèque/ライブラリ.so", ()))
    assert json.loads(capsys.readouterr().out)["path"] == "bibliothèque/ライブラリ.so"
