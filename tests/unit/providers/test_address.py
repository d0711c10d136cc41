"""What is on this machine, and what is a hub's name."""

from __future__ import annotations

import pytest

from ragx.providers.address import is_hub_name, is_local


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1234/v1",
        "http://LOCALHOST",
        "http://127.0.0.1:80",
        "http://127.9.9.9/v1",
        "http://[::1]:8080/v1",
    ],
)
def test_addresses_of_this_machine(url: str) -> None:
    assert is_local(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:1234",
        "http://0.0.0.0:1",
        "http://192.168.0.1",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://localhost@example.com",
        "http://[::1",
        "https://api.example.com/v1",
        "http://models.localhost/v1",
        "http://127.0.0.1./v1",
        "http://127.1",
        "http://127.999.0.1",
        "http://0x7f.1",
        "http://127.0.0.\u0967",
        "http://localho\u017ft",
        "http://evil.example\\.localhost",
        "http://[::ffff:127.0.0.1]",
    ],
)
def test_addresses_elsewhere(url: str) -> None:
    assert not is_local(url)


@pytest.mark.parametrize("name", ["bert", "BAAI/bge-m3", "a.b_c/d-e.1"])
def test_names_of_a_hub(name: str) -> None:
    assert is_hub_name(name)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "./m",
        "../m",
        "/m",
        "~/m",
        "a/b/c",
        "a\\b",
        "C:\\m",
        "a b",
        "-x",
        "a/.b",
        "\u00e9/x",
    ],
)
def test_paths(path: str) -> None:
    assert not is_hub_name(path)
