"""Buckets of S3 and of what speaks its protocol."""

from __future__ import annotations

import os
from typing import Any

from obstore.store import S3Store

from rocwheel.stores.objects.object_store import ObjectStore
from rocwheel.stores.objects.patience import CLIENT, RETRIES
from rocwheel.stores.objects.s3_endpoint import is_http_allowed, read_endpoint
from rocwheel.stores.urls import parse_url, shown_url

__all__ = ["open_at"]


def open_at(url: str) -> ObjectStore:
    """Return the bucket, or the part of it below a prefix, at ``s3://BUCKET/PREFIX``; nothing is asked of it yet."""
    _, bucket, prefix = parse_url(url)
    settings: Any = {"copy_if_not_exists": "multipart"}
    client: Any = dict(CLIENT)
    if not (os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")):
        settings["region"] = "us-east-1"
    if endpoint := read_endpoint(os.environ):
        settings["endpoint"] = endpoint
    if is_http_allowed(os.environ):
        client["allow_http"] = True
    inner = S3Store(bucket, prefix=prefix or None, config=settings, client_options=client, retry_config=RETRIES)
    return ObjectStore(inner, shown_url(url))
