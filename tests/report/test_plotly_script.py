"""Tests of the script of Plotly in pages."""

from __future__ import annotations

import sys

import pytest

from rocwheel.core.errors import InputError
from rocwheel.report.page import plotly_script


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
