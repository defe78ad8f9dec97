"""Tests of what pages are made with: the script of Plotly, and Jinja2."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rocwheel.core.errors import InputError
from rocwheel.report import page
from rocwheel.report.page import check_output, plotly_script

if TYPE_CHECKING:
    from pathlib import Path


def test_the_script_cannot_end_its_element() -> None:
    text = plotly_script().lower()
    assert len(text) > 1 << 20
    assert "</script" not in text
    assert "<!--" not in text


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    plotly_script.cache_clear()
    monkeypatch.setitem(sys.modules, "plotly.offline", None)
    with pytest.raises(InputError, match=r"pip install 'rocwheel\[report\]'"):
        plotly_script()
    plotly_script.cache_clear()


def test_a_missing_template_engine_is_named_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "_template", page._template.__wrapped__)
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"jinja2: is not installed.*pip install 'rocwheel\[report\]'"):
        check_output(tmp_path / "report.html", [])
