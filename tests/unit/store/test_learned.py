from __future__ import annotations

import pytest

from ragx.errors import StoreError
from ragx.store.learned import LEARNED_NAME, read_learned, write_learned

VALUES = {"max_items": 10, "dimension": 384}


@pytest.fixture
def root(tmp_path):
    (tmp_path / ".ragx").mkdir()
    return tmp_path


def test_what_is_written_is_read_for_the_same_server(root):
    assert read_learned(root, "a") == {}
    write_learned(root, "a", VALUES)
    assert read_learned(root, "a") == VALUES
    assert read_learned(root, "b") == {}
    write_learned(root, "b", {})
    assert read_learned(root, "a") == {}


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"null", b"[]", b'{"server": "a"}', b"\xff", b"[" * 99_999]
)
def test_damage_is_as_if_nothing_were_known(root, damage):
    (root / ".ragx" / LEARNED_NAME).write_bytes(damage)
    assert read_learned(root, "a") == {}
    write_learned(root, "a", VALUES)
    assert read_learned(root, "a") == VALUES


def test_what_cannot_be_written_is_said(tmp_path):
    with pytest.raises(StoreError):
        write_learned(tmp_path / "nowhere", "a", VALUES)
