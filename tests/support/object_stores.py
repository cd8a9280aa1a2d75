"""What an object store of moto, in this process, was asked with."""

from __future__ import annotations

import os
from typing import Any

import pytest


def keys_of_requests(patch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list that gets the access key of each request, "" for one without.

    The environment has no credentials from here on.
    """
    from moto.s3.responses import S3Response

    keys: list[str] = []
    setup = S3Response.setup_class

    def noted(self: Any, request: Any, *more: Any) -> None:
        _, _, after = request.headers.get("Authorization", "").partition("Credential=")
        keys.append(after.partition("/")[0])
        setup(self, request, *more)

    patch.setattr(S3Response, "setup_class", noted)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        patch.delenv(name)
    return keys
