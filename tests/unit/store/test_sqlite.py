"""Snapshots, commits and exactness of the SQLite engine."""

from __future__ import annotations

import random
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.errors import IndexBusy, IndexDamaged, IndexMissing, ManifestMismatch, StoreError
from ragx.query.seeds import COLUMN_WEIGHTS
from ragx.store.base import LinkOptions
from ragx.store.seal import SEAL_NAME
from ragx.store.sqlite import SqliteReader, SqliteWriter

Write = Callable[..., None]

WORDS = "zebra apple banana cherry grape lemon mango melon olive peach plum quince".split()
EXPRESSIONS = [
    *(f'"{word}"' for word in WORDS),
    '"zebra" OR "apple"',
    '"apple banana"',
    '"top" OR "heading"',
    '"f1" OR "md"',
    '"symbol7"',
]


def lexical_state(root: Path) -> dict[str, list[tuple[int, float]]]:
    """Every chunk's exact BM25 for many expressions."""
    with closing(SqliteReader(root)) as reader:
        return {
            expression: reader.lexical(expression, depth=10_000, weights=COLUMN_WEIGHTS)
            for expression in EXPRESSIONS
        }


def vector_state(
    root: Path, vector_of: Callable[[str], np.ndarray]
) -> list[list[tuple[int, float]]]:
    with closing(SqliteReader(root)) as reader:
        return [reader.vector(vector_of(word), depth=1000) for word in WORDS]


def row_state(root: Path) -> object:
    """All rows that users can see, in comparable form."""
    with closing(SqliteReader(root)) as reader:
        files = reader.files()
        chunks = {path: reader.chunks_of(path) for path in files}
        return files, chunks, reader.counts(), reader.unembedded(100), reader.manifest()


# Nothing yet.


def test_no_index(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing) as caught:
        SqliteReader(tmp_path)
    assert "ragx index" in caught.value.hint
    assert not (tmp_path / ".ragx").exists()  # looking must not make anything


def test_an_index_that_no_run_has_finished_is_none(tmp_path: Path) -> None:
    SqliteWriter(tmp_path).close()
    with pytest.raises(IndexMissing):
        SqliteReader(tmp_path)


def test_a_commit_of_nothing_is_an_empty_index(tmp_path: Path, write: Write) -> None:
    write({})
    with closing(SqliteReader(tmp_path)) as reader:
        assert reader.generation == 1
        assert reader.files() == {}
        assert (reader.counts().files, reader.counts().chunks) == (0, 0)
        assert reader.lexical('"zebra"', depth=5, weights=COLUMN_WEIGHTS) == []
        assert reader.vector(np.ones(32, np.float32), depth=5) == []
        assert reader.vector_scores(np.ones(32, np.float32), [1, 2]) == {}
        assert reader.dimension() == 0
        assert reader.unembedded(3) == (0, [])


# What goes in comes out.


def test_rows_come_back_as_they_were_staged(
    tmp_path: Path, write: Write, make_row, make_staged
) -> None:
    texts = ["Top > Sub | zebra apple", "banana @ symbol7", "zebra apple", "é\U0001f418\0\r\n日本"]
    write({"b/ä.md": texts, "a.md": ["one"]})
    with closing(SqliteReader(tmp_path)) as reader:
        assert list(reader.files()) == ["a.md", "b/ä.md"]
        assert reader.file("b/ä.md") == make_row("b/ä.md", texts)
        assert reader.file("nope") is None
        expected = [item.chunk for item in make_staged("b/ä.md", texts, vectors=True)]
        assert reader.chunks_of("b/ä.md") == expected
        assert reader.chunks_of("nope") == []
        ids = [chunk.chunk_id for chunk in expected]
        assert reader.chunks([*ids, *ids, 12345]) == dict(zip(ids, expected, strict=True))
        assert reader.chunks([]) == {}
        counts = reader.counts()
        assert (counts.files, counts.chunks, counts.vectors, counts.postings) == (2, 5, 5, 5)
        assert reader.manifest() == {"analysis_version": "1", "embeddings_provider": "hash"}


def test_more_ids_than_a_statement_takes(tmp_path: Path, write: Write) -> None:
    write({"a.md": [f"zebra number{i}" for i in range(1203)]}, vectors=False)
    with closing(SqliteReader(tmp_path)) as reader:
        found = reader.lexical('"zebra"', depth=5000, weights=COLUMN_WEIGHTS)
        ids = [chunk_id for chunk_id, _ in found]
        assert len(ids) == 1203
        assert len(reader.chunks(ids)) == 1203
        assert reader.matching('"zebra"', ids) == set(ids)
        assert reader.matching('"number7"', ids) != set()
        scores = reader.lexical_scores('"zebra"', ids, weights=COLUMN_WEIGHTS)
        assert scores == dict(found)


def test_scores_of_a_part_are_those_of_the_whole(tmp_path: Path, write: Write, vector_of) -> None:
    write({f"f{i}.md": [f"{WORDS[i % 12]} {WORDS[i % 5]} text{i}"] for i in range(40)})
    with closing(SqliteReader(tmp_path)) as reader:
        whole = dict(reader.lexical('"apple" OR "zebra"', depth=100, weights=COLUMN_WEIGHTS))
        some = sorted(whole)[::2]
        part = reader.lexical_scores('"apple" OR "zebra"', some, weights=COLUMN_WEIGHTS)
        assert part == {chunk_id: whole[chunk_id] for chunk_id in some}
        cosines = dict(reader.vector(vector_of("query"), depth=100))
        again = reader.vector_scores(vector_of("query"), some)
        assert again == pytest.approx({chunk_id: cosines[chunk_id] for chunk_id in some}, abs=1e-6)


def test_lexical_leaves_out_and_stops_at_depth(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra apple", "zebra banana", "zebra zebra cherry"]}, vectors=False)
    with closing(SqliteReader(tmp_path)) as reader:
        every = reader.lexical('"zebra"', depth=9, weights=COLUMN_WEIGHTS)
        assert [score for _, score in every] == sorted((s for _, s in every), reverse=True)
        # The two others tie: the first in the file stays.
        two = reader.lexical('"zebra"', depth=2, weights=COLUMN_WEIGHTS)
        assert [score for _, score in two] == [score for _, score in every[:2]]
        assert [reader.chunks([chunk_id])[chunk_id].ordinal for chunk_id, _ in two] == [2, 0]
        assert reader.lexical('"zebra"', depth=0, weights=COLUMN_WEIGHTS) == []
        assert reader.lexical("", depth=5, weights=COLUMN_WEIGHTS) == []
        left = reader.lexical('"zebra"', depth=9, weights=COLUMN_WEIGHTS, exclude='"apple"')
        texts = {reader.chunks([chunk_id])[chunk_id].text for chunk_id, _ in left}
        assert texts == {"zebra banana", "zebra zebra cherry"}


# Snapshots.


def test_an_open_reader_keeps_its_answers_and_a_new_one_sees_the_commit(
    tmp_path: Path, write: Write, vector_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragx.store.connect._BUSY_TIMEOUT_S", 0.5)  # see the test of close() below
    write({"a.md": ["zebra apple"], "b.md": ["banana"]})
    old = SqliteReader(tmp_path)
    try:
        before = old.lexical('"zebra"', depth=9, weights=COLUMN_WEIGHTS)
        files = old.files()
        assert before
        write({"a.md": ["cherry"], "b.md": None, "c.md": ["zebra", "zebra grape"]})
        assert old.files() == files
        assert old.lexical('"zebra"', depth=9, weights=COLUMN_WEIGHTS) == before
        assert old.generation == 1
        # The vectors were not loaded before the commit, whose derived files are of a later state.
        ids = {chunk_id for chunk_id, _ in old.vector(vector_of("zebra apple"), depth=9)}
        assert ids == {chunk.chunk_id for path in files for chunk in old.chunks_of(path)}
        with closing(SqliteReader(tmp_path)) as new:
            assert new.generation == 2
            assert list(new.files()) == ["a.md", "c.md"]
            found = new.vector(vector_of("zebra"), depth=9)
            assert {chunk_id for chunk_id, _ in found} == {
                chunk.chunk_id for path in new.files() for chunk in new.chunks_of(path)
            }
    finally:
        old.close()


def test_what_is_staged_shows_nowhere_until_the_commit(
    tmp_path: Path, write: Write, make_row, make_staged
) -> None:
    write({"a.md": ["zebra"]})
    with closing(SqliteWriter(tmp_path)) as writer:
        writer.stage_file(
            make_row("b.md", ["apple"]), make_staged("b.md", ["apple"], vectors=False)
        )
        writer.stage_delete("a.md")
        with closing(SqliteReader(tmp_path)) as reader:
            assert list(reader.files()) == ["a.md"]
    # Closed without a commit: nothing happened.
    with closing(SqliteReader(tmp_path)) as reader:
        assert list(reader.files()) == ["a.md"]
        assert reader.generation == 1


def test_a_commit_that_fails_changes_nothing_and_can_be_made_again(
    tmp_path: Path, write: Write, make_row, make_staged
) -> None:
    write({"a.md": ["zebra"]})
    before = row_state(tmp_path), lexical_state(tmp_path)
    with closing(SqliteWriter(tmp_path)) as writer:
        texts = ["apple " * 400] * 200
        writer.stage_file(make_row("b.md", texts), make_staged("b.md", texts, vectors=False))
        (pages,) = writer._db.execute("PRAGMA main.page_count").fetchone()
        writer._db.execute(f"PRAGMA main.max_page_count = {pages + 2}")
        with pytest.raises(StoreError) as caught:
            writer.commit({"x": "1"}, LinkOptions())
        assert caught.value.code == "disk_full"
        assert (row_state(tmp_path), lexical_state(tmp_path)) == before
        writer._db.execute("PRAGMA main.max_page_count = 1000000")
        assert writer.commit({"x": "1"}, LinkOptions()).chunks_added == 200
    assert lexical_state(tmp_path)['"apple"']


def test_embeddings_outlive_a_run_that_never_commits(tmp_path: Path, vector_of) -> None:
    key = b"k" * 16
    with closing(SqliteWriter(tmp_path)) as writer:
        writer.put_embeddings([(key, vector_of("x"))])
    with closing(SqliteWriter(tmp_path)) as writer:
        assert writer.known_embeddings([key, b"n" * 16]) == {key}


# Exactness after edits.


def _random_files(rng: random.Random) -> list[str]:
    def chunk() -> str:
        text = " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))
        text = f"Top > Heading{rng.randint(0, 3)} | {text}" if rng.random() < 0.5 else text
        return f"{text} @ symbol{rng.randint(0, 9)}" if rng.random() < 0.3 else text

    return [chunk() for _ in range(rng.randint(0, 6))]


@pytest.mark.parametrize("seed", range(6))
def test_an_index_after_edits_equals_a_fresh_one_exactly(
    tmp_path: Path, write: Write, vector_of, seed: int
) -> None:
    rng = random.Random(seed)
    edited, fresh = tmp_path / "edited", tmp_path / "fresh"
    edited.mkdir()
    fresh.mkdir()
    now: dict[str, list[str]] = {}
    for _ in range(6):
        step: dict[str, list[str] | None] = {}
        for path in rng.sample([f"f{i}.md" for i in range(8)], k=3):
            old = now.get(path)
            if old is not None and rng.random() < 0.3:
                step[path] = None
            elif old and rng.random() < 0.6:  # move, drop, repeat, reword, and a heading changed
                new = [*old]
                rng.shuffle(new)
                new = new[: rng.randint(0, len(new))] + _random_files(rng)[:2] + new[:1]
                step[path] = [text.replace("Heading1", "Heading2") for text in new]
            else:
                step[path] = _random_files(rng)
        write(step, root=edited, reset=False)
        for path, texts in step.items():
            now.pop(path, None)
            if texts is not None:
                now[path] = texts
    write(now, root=fresh)
    assert row_state(edited) == row_state(fresh)
    assert lexical_state(edited) == lexical_state(fresh)
    assert vector_state(edited, vector_of) == vector_state(fresh, vector_of)
    with closing(SqliteReader(edited)) as reader:
        counts = reader.counts()
        assert counts.chunks == counts.vectors == counts.postings  # HOSTILE: counts must agree


def test_a_reset_keeps_only_what_is_staged_again(
    tmp_path: Path, write: Write, make_row, make_staged
) -> None:
    write({"a.md": ["zebra"], "b.md": ["apple"], "c.md": ["banana zebra"]})
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    write({"a.md": ["zebra cherry"], "b.md": ["apple"]}, root=fresh)
    with closing(SqliteWriter(tmp_path)) as writer:
        writer.reset()
        writer.stage_file(
            make_row("a.md", ["zebra cherry"]), make_staged("a.md", ["zebra cherry"], vectors=True)
        )
        writer.put_embeddings([])
        writer.stage_stat(make_row("b.md", ["apple"]))  # could not be read: its chunks stay
        writer.commit({"analysis_version": "1", "embeddings_provider": "hash"}, LinkOptions())
    assert lexical_state(tmp_path) == lexical_state(fresh)
    with closing(SqliteReader(tmp_path)) as reader:
        assert list(reader.files()) == ["a.md", "b.md"]


def test_a_stat_alone_keeps_chunks(tmp_path: Path, write: Write, make_row) -> None:
    write({"a.md": ["zebra"]})
    before = lexical_state(tmp_path)
    with closing(SqliteWriter(tmp_path)) as writer:
        writer.stage_stat(make_row("a.md", ["zebra"], mtime_ns=99, scanned_ns=100))
        writer.confirm("a.md", 12345)
        result = writer.commit(
            {"analysis_version": "1", "embeddings_provider": "hash"}, LinkOptions()
        )
    assert (result.chunks_added, result.chunks_deleted) == (0, 0)
    assert lexical_state(tmp_path) == before
    with closing(SqliteReader(tmp_path)) as reader:
        row = reader.file("a.md")
        assert row is not None
        assert (row.mtime_ns, row.scanned_ns) == (99, 12345)


def test_a_file_replaced_by_a_directory_of_its_name(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra"]})
    write({"a.md": None, "a.md/b.md": ["apple"]})
    with closing(SqliteReader(tmp_path)) as reader:
        assert list(reader.files()) == ["a.md/b.md"]


def test_equal_chunks_in_one_file_and_across_files(tmp_path: Path, write: Write) -> None:
    write({f"f{i}.md": ["zebra same text"] * 3 for i in range(5)})
    with closing(SqliteReader(tmp_path)) as reader:
        found = reader.lexical('"zebra"', depth=100, weights=COLUMN_WEIGHTS)
        assert len(found) == len({chunk_id for chunk_id, _ in found}) == 15
        assert len({score for _, score in found}) == 1
        chunks = reader.chunks([chunk_id for chunk_id, _ in found])
        places = [(chunks[chunk_id].path, chunks[chunk_id].ordinal) for chunk_id, _ in found]
        assert places == sorted(places)


def test_old_embeddings_go_and_returning_ones_stay(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    write({"a.md": ["zebra"], "b.md": ["apple"]})
    write({"a.md": None, "b.md": None})

    def stored() -> int:
        with closing(SqliteWriter(tmp_path)) as writer:
            return writer._db.execute("SELECT count(*) FROM embeddings").fetchone()[0]

    assert stored() == 2
    monkeypatch.setattr(time, "time", lambda: now + 20 * 86400)
    write({"a.md": ["zebra"]})  # it comes back
    monkeypatch.setattr(time, "time", lambda: now + 40 * 86400)
    write({"c.md": ["cherry"]})
    assert stored() == 2  # zebra and cherry; apple was unused for 40 days
    with closing(SqliteReader(tmp_path)) as reader:
        assert reader.counts().vectors == 2


# One writer, many readers.


def test_a_second_writer_is_told_who_is_first(tmp_path: Path) -> None:
    with closing(SqliteWriter(tmp_path)):
        with pytest.raises(IndexBusy) as caught:
            SqliteWriter(tmp_path)
        assert "process" in caught.value.message
        assert caught.value.hint
    SqliteWriter(tmp_path).close()  # the lock is free again


def test_a_second_process_is_refused_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path\n"
        "from ragx.store.sqlite import SqliteWriter\n"
        "w = SqliteWriter(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
    )
    root = Path(__file__).resolve().parents[3]
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=root
    )
    try:
        assert process.stdout is not None
        process.stdout.readline()
        with pytest.raises(IndexBusy) as caught:
            SqliteWriter(tmp_path)
        assert str(process.pid) in caught.value.message
    finally:
        process.kill()
        process.communicate()
    SqliteWriter(tmp_path).close()


def test_readers_in_many_threads_while_runs_commit(tmp_path: Path, write: Write, vector_of) -> None:
    """HOSTILE: query loop during index. No torn state: both sides tell of the same files."""
    write({f"f{i}.md": ["zebra generation0"] for i in range(3)})
    faults: list[BaseException] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                with closing(SqliteReader(tmp_path)) as reader:
                    ids = [
                        i for i, _ in reader.lexical('"zebra"', depth=50, weights=COLUMN_WEIGHTS)
                    ]
                    texts = {chunk.text for chunk in reader.chunks(ids).values()}
                    near = {i for i, _ in reader.vector(vector_of("q"), depth=50)}
                    assert len(texts) == 1, texts
                    assert near == set(ids)
        except BaseException as exc:
            faults.append(exc)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for generation in range(1, 6):
            write({f"f{i}.md": [f"zebra generation{generation}"] for i in range(3)})
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert faults == []


def test_an_open_reader_does_not_hold_a_run_up(
    tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragx.store.connect._BUSY_TIMEOUT_S", 0.1)
    write({"a.md": ["zebra"]})
    with closing(SqliteReader(tmp_path)):
        write({"a.md": ["apple"]})  # would fail at the busy timeout if it waited for the reader
    with closing(SqliteReader(tmp_path)) as reader:
        assert [chunk.text for chunk in reader.chunks_of("a.md")] == ["apple"]


# The directory.


def test_only_the_owner_may_look_and_git_does_not(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra"]})
    directory = tmp_path / ".ragx"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert (directory / ".gitignore").read_bytes() == b"*\n"
    for path in directory.iterdir():
        if path.name != ".gitignore":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name


def test_nothing_is_left_lying_about(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra"]})
    write({"a.md": ["apple"]})
    assert {path.name for path in (tmp_path / ".ragx").iterdir()} == {
        ".gitignore",
        "graph.bin",
        "index.db",
        "index.seal",
        "vectors.bin",
        "writer.lock",
    }


def test_an_own_gitignore_is_kept(tmp_path: Path, write: Write) -> None:
    (tmp_path / ".ragx").mkdir()
    (tmp_path / ".ragx" / ".gitignore").write_text("# mine\n*\n")
    write({"a.md": ["zebra"]})
    assert (tmp_path / ".ragx" / ".gitignore").read_text() == "# mine\n*\n"


@pytest.mark.parametrize("odd", ["a b", "q?x#y%20", "ü", "-dash", "quote'\""])
def test_roots_with_odd_names(tmp_path: Path, write: Write, odd: str) -> None:
    root = tmp_path / odd
    root.mkdir()
    write({"a.md": ["zebra"]}, root=root)
    with closing(SqliteReader(root)) as reader:
        assert reader.counts().files == 1


def test_ragx_is_a_file_or_the_database_a_directory(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one).mkdir()
    (one / ".ragx").write_text("")
    (other / ".ragx" / "index.db").mkdir(parents=True)
    for root in (one, other):
        with pytest.raises(StoreError) as caught:
            SqliteWriter(root)
        assert caught.value.message
        with pytest.raises(StoreError):
            SqliteReader(root)


# Damage. HOSTILE: truncate or corrupt each file under .ragx/ in turn: a clear message and a way
# back.


def damage(path: Path, how: str) -> None:
    raw = bytearray(path.read_bytes())
    if how == "empty":
        raw.clear()
    elif how == "half":
        del raw[len(raw) // 2 :]
    elif how == "garbage":
        raw = bytearray(b"this is no database, it is text" * 200)
    elif how == "header":
        raw[0:16] = bytes(16)
    elif how == "last page":
        raw[-4096:] = b"\xff" * 4096
    path.write_bytes(raw)


@pytest.mark.parametrize("how", ["empty", "half", "garbage", "header"])
def test_a_damaged_database_is_said_and_a_full_run_makes_it_anew(
    tmp_path: Path, write: Write, how: str
) -> None:
    write({f"f{i}.md": [f"zebra {WORDS[i % 12]}"] * 3 for i in range(50)})
    damage(tmp_path / ".ragx" / "index.db", how)
    with pytest.raises(StoreError) as caught, closing(SqliteReader(tmp_path)) as reader:
        reader.files()
        reader.chunks_of("f1.md")
        reader.lexical('"zebra"', depth=5, weights=COLUMN_WEIGHTS)
        reader.vector(np.ones(32, np.float32), depth=5)
    assert "--full" in caught.value.hint or "ragx index" in caught.value.hint


@pytest.mark.parametrize("how", ["empty", "garbage", "header"])
def test_rebuild_replaces_a_database_that_cannot_be_opened(
    tmp_path: Path, write: Write, how: str
) -> None:
    write({"a.md": ["zebra"]})
    damage(tmp_path / ".ragx" / "index.db", how)
    with closing(SqliteWriter(tmp_path, rebuild=True)) as writer:
        assert writer.files() == {}
        assert writer.manifest() == {}


def test_rebuild_replaces_a_database_with_a_bad_page(tmp_path: Path, write: Write) -> None:
    files = {f"f{i}.md": [f"zebra {WORDS[i % 12]} text{i}{j}" for j in range(9)] for i in range(90)}
    write(files)
    path = tmp_path / ".ragx" / "index.db"
    whole = path.read_bytes()
    failed = []
    for page in range(1, len(whole) // 4096, 9):
        broken = bytearray(whole)
        broken[page * 4096 : (page + 1) * 4096] = b"\xff" * 4096
        path.write_bytes(broken)
        try:
            with closing(SqliteWriter(tmp_path, rebuild=True)) as writer:
                writer.reset()
                writer.files()
                writer.manifest()
                writer.known_embeddings([bytes(16)])
                writer.commit({"x": "1"}, LinkOptions())
            with closing(SqliteReader(tmp_path)) as reader:
                assert reader.files() == {}
        except StoreError as fault:
            failed.append((page, fault.message))
    assert failed == []


def test_another_programs_database_is_not_touched_without_asking(tmp_path: Path) -> None:
    (tmp_path / ".ragx").mkdir()
    path = tmp_path / ".ragx" / "index.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE mine (x)")
        other.commit()
    for opening in (SqliteReader, SqliteWriter):
        with pytest.raises(IndexDamaged) as caught:
            opening(tmp_path)
        assert "--full" in caught.value.hint


def test_an_index_of_another_version_names_both(tmp_path: Path, write: Write) -> None:
    write({"a.md": ["zebra"]})
    with closing(sqlite3.connect(tmp_path / ".ragx" / "index.db")) as db:
        db.execute("PRAGMA user_version = 99")
    (tmp_path / ".ragx" / SEAL_NAME).unlink()
    for opening in (SqliteReader, SqliteWriter):
        with pytest.raises(ManifestMismatch) as caught:
            opening(tmp_path)
        assert "99" in caught.value.message
        assert "--full" in caught.value.hint
    with closing(SqliteWriter(tmp_path, rebuild=True)) as writer:
        assert writer.files() == {}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE chunks SET heading = '[broken'",
        "UPDATE meta SET value = 'many' WHERE key = 'generation'",
        "UPDATE meta SET value = 'zz' WHERE key = 'state.vectors'",
        "DELETE FROM meta WHERE key = 'generation'",
        "DELETE FROM meta WHERE key = 'state.unembedded'",
        "UPDATE embeddings SET vector = x'00'",
        "UPDATE embeddings SET vector = x'000102'",
    ],
)
def test_values_that_make_no_sense_are_damage(tmp_path: Path, write: Write, statement: str) -> None:
    write({"a.md": ["Top | zebra"]}, derived=False)
    with closing(sqlite3.connect(tmp_path / ".ragx" / "index.db")) as db:
        db.execute(statement)
        db.commit()
    with pytest.raises(StoreError), closing(SqliteReader(tmp_path)) as reader:
        found = reader.lexical('"zebra"', depth=5, weights=COLUMN_WEIGHTS)
        (chunk,) = reader.chunks([chunk_id for chunk_id, _ in found]).values()
        assert chunk.heading == ("Top",)
        reader.unembedded(3)
        reader.vector(np.ones(32, np.float32), depth=5)
        reader.counts()


@pytest.mark.parametrize("table", ["files", "windows", "embeddings", "postings", "meta"])
def test_a_table_that_is_missing_is_damage(tmp_path: Path, write: Write, table: str) -> None:
    write({"a.md": ["zebra"]}, derived=False)
    with closing(sqlite3.connect(tmp_path / ".ragx" / "index.db")) as db:
        db.execute(f"DROP TABLE {table}")
    with pytest.raises(IndexDamaged) as caught, closing(SqliteReader(tmp_path)) as reader:
        reader.files()
        reader.lexical('"zebra"', depth=5, weights=COLUMN_WEIGHTS)
        reader.vector(np.ones(32, np.float32), depth=5)
    assert "--full" in caught.value.hint


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_vectors_that_are_none_are_refused_at_the_door(tmp_path: Path, bad: float) -> None:
    vector = np.full(32, 0.1, np.float32)
    vector[3] = bad
    with closing(SqliteWriter(tmp_path)) as writer, pytest.raises(StoreError):
        writer.put_embeddings([(b"k" * 16, vector)])
