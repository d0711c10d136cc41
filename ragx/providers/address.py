"""Where a name leads: an address on this machine or elsewhere, a model of a hub or a path."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

__all__ = ["is_hub_name", "is_local"]

# Only what no name server is asked about: `x.localhost` may lead anywhere. ASCII, as other digits
# are read as numbers by some and as letters of a domain by others.
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_LOCAL = re.compile(rf"localhost|127(?:\.{_BYTE}){{3}}|::1", re.IGNORECASE | re.ASCII)
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:/[A-Za-z0-9][\w.-]*)?", re.ASCII)


def is_local(base_url: str) -> bool:
    """Whether an address names this machine and nothing else."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:
        return False
    return host.isascii() and bool(_LOCAL.fullmatch(host))


def is_hub_name(model: str) -> bool:
    """Whether a model is one of a hub, `name` or `owner/name`; anything else is a path.

    It does not matter what lies where: a directory of that name must not take a model's place.
    """
    return bool(_HUB_NAME.fullmatch(model))
