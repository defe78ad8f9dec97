"""The variables that name another service than Amazon's: what they may hold."""

from __future__ import annotations

import pytest

from rocwheel.core.errors import InputError
from rocwheel.stores.objects import read_endpoint


@pytest.mark.parametrize(
    ("environ", "endpoint"),
    [
        ({}, ""),
        ({"AWS_ENDPOINT_URL": "https://s3.example.org"}, "https://s3.example.org"),
        ({"AWS_ENDPOINT_URL": "http://h:1", "AWS_ALLOW_HTTP": "true"}, "http://h:1"),
        ({"AWS_ENDPOINT_URL_S3": "https://a", "AWS_ENDPOINT_URL": "garbage"}, "https://a"),
        ({"AWS_ENDPOINT": "https://a:9000/minio"}, "https://a:9000/minio"),
    ],
)
def test_an_endpoint_is_the_url_of_a_server(environ: dict[str, str], endpoint: str) -> None:
    assert read_endpoint(environ) == endpoint


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"])
@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("", "is set and empty; expected https://HOST or http://HOST:PORT. Unset it for Amazon's own service."),
        ("127.0.0.1:15055", "holds a text, which is no URL of a server alone; expected https://HOST"),
        ("user:word@garbage", "holds a text, which is no URL of a server alone"),
        ("ftp://x", "holds ftp://x, which is no URL of a server alone"),
        ("https://", "which names no host"),
        (" http://h", "which is no URL of a server alone"),
        ("http://h ", "has a blank or control character"),
        ("http://h:99999", "holds http://h:99999, which is not a URL (Port out of range 0-65535)"),
        ("https://user:word@h", "holds https://h, which is no URL of a server alone"),
        ("https://h/x?y=1", "holds https://h/x, which is no URL of a server alone"),
        ("http://h:1", "names http://h:1, which is reached without encryption; expected https://. Set AWS_ALLOW_HTTP"),
    ],
)
def test_what_is_no_endpoint_is_refused(variable: str, url: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_endpoint({variable: url})
    assert str(caught.value).startswith(f"{variable}: ")
    assert message in str(caught.value)
    assert "word" not in str(caught.value)
