"""Who may ask a server, by headers alone."""

from __future__ import annotations

import pytest

from ragx.errors import ConfigError, UsageError
from ragx.shells.guard import HttpOptions, refusal

LOCAL = HttpOptions()
TOKEN = HttpOptions("0.0.0.0", 8766, "secret")


@pytest.mark.parametrize(
    ("options", "host", "more", "status"),
    [
        (LOCAL, "127.0.0.1:8766", {}, None),
        (LOCAL, "localhost", {}, None),
        (LOCAL, "[::1]:80", {}, None),
        (LOCAL, "127.0.0.1:8766", {"origin": ["http://localhost:5000"]}, None),
        (LOCAL, "0.0.0.0:8766", {}, 421),
        (LOCAL, "localhost.", {}, 421),
        (LOCAL, "localhost:80:80", {}, 421),
        (LOCAL, "x@localhost", {}, 421),
        (LOCAL, "localhost/x", {}, 421),
        (LOCAL, "", {}, 421),
        (LOCAL, "localhost", {"origin": ["null"]}, 403),
        (LOCAL, "localhost", {"origin": [""]}, 403),
        (LOCAL, "localhost", {"origin": ["http://localhost@evil.example"]}, 403),
        (LOCAL, "localhost", {"origin": ["chrome-extension://localhost"]}, 403),
        (LOCAL, "localhost", {"origin": ["http://localhost", "http://localhost"]}, 400),
        (TOKEN, "ragx.example", {"authorization": ["Bearer secret"]}, None),
        (TOKEN, "ragx.example", {"authorization": ["Bearer Secret"]}, 401),
        (TOKEN, "ragx.example", {}, 401),
        (TOKEN, "x", {"origin": ["http://x"], "authorization": ["Bearer secret"]}, 403),
        (HttpOptions("10.1.2.3", 1, "secret"), "10.1.2.3:1", {}, 401),
        (HttpOptions("10.1.2.3", 1, "secret"), "other.example", {}, 421),
    ],
)
def test_refusal(
    options: HttpOptions, host: str, more: dict[str, list[str]], status: int | None
) -> None:
    refused = refusal({"host": [host], **more}, options)
    assert (refused and refused[0]) == status


def test_two_hosts_or_none_are_refused() -> None:
    assert refusal({}, LOCAL) == refusal({"host": ["localhost", "localhost"]}, LOCAL)
    assert refusal({}, LOCAL) is not None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_this_machine_needs_no_token(host: str) -> None:
    assert HttpOptions.checked(host, 0, None, {}).token == ""


def test_a_token_comes_from_its_variable_and_is_not_shown() -> None:
    options = HttpOptions.checked("0.0.0.0", 0, "NAME", {"NAME": " secret\n"})
    assert options.token == "secret"
    assert "secret" not in repr(options)
    with pytest.raises(ConfigError):
        HttpOptions.checked("127.0.0.1", 0, "OTHER", {"NAME": "secret"})
    with pytest.raises(UsageError):
        HttpOptions.checked("ragx.example", 0, None, {})
