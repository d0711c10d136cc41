from __future__ import annotations

import pytest

from ragx.providers.sse import EventStream


def events(*parts: bytes) -> list[object]:
    found: list[object] = []
    stream = EventStream(found.append)
    counted = sum(stream.feed(part) for part in parts)
    stream.end()
    assert stream.n_events == len(found)
    assert counted <= len(found)
    return found


@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_cuts_anywhere_change_nothing(step: int) -> None:
    raw = b': ping\n\nevent: x\r\ndata: {"a": "\xc3\xa9"}\r\n\r\ndata:2\n\n'
    raw += b"data: [DONE]\n\ndata: 3\n\n"
    parts = [raw[at : at + step] for at in range(0, len(raw), step)]
    assert events(*parts) == [{"a": "\u00e9"}, 2]


def test_what_is_no_event_is_passed_over() -> None:
    assert events(b"data: nonsense\n\nid: 7\n\n\n\ndata:\n\n", b'data: {"a": 1}') == [{"a": 1}]


def test_a_line_without_end_is_refused() -> None:
    stream = EventStream(lambda _: None)
    with pytest.raises(ValueError, match="long"):
        for _ in range(5):
            stream.feed(b"data: " + b"x" * 1024 * 1024)


def test_a_new_attempt_forgets_the_old_one() -> None:
    found: list[object] = []
    stream = EventStream(found.append)
    stream.feed(b'data: {"a": ')
    stream.begin()
    stream.feed(b'data: {"b": 1}\n')
    assert found == [{"b": 1}]
