"""Indexing runs over a real tree and store, with an embedder that counts what it is given."""

from __future__ import annotations

import base64
import itertools
import os
import random
import shutil
import time
from collections.abc import Callable, Collection
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import (
    BadEmbedding,
    ManifestMismatch,
    ProviderError,
    ProviderUnavailable,
    RagxError,
    UsageError,
)
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.fakes import HashEmbedder
from ragx.query.seeds import COLUMN_WEIGHTS
from ragx.store.base import LinkOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.types import BuildReport, Progress


class Bench:
    """A corpus and its runs. Each run happens ten seconds after the edits before it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.embedder: HashEmbedder | None = HashEmbedder()
        self.scan = ScanOptions()
        self.chunking = ChunkOptions(size_tokens=40)

    def write(self, path: str, content: str | bytes) -> Path:
        full = self.root / path
        full.parent.mkdir(parents=True, exist_ok=True)
        full.write_bytes(content.encode() if isinstance(content, str) else content)
        return full

    def run(
        self,
        *,
        only: Collection[str] | None = None,
        force: Collection[str] = (),
        full: bool = False,
        no_cache: bool = False,
        progress: Callable[[Progress], None] = lambda _: None,
    ) -> BuildReport:
        embedder = self.embedder
        if isinstance(embedder, HashEmbedder):
            embedder.calls.clear()
        options = BuildOptions(
            self.scan, self.chunking, only=only, force=force, full=full, no_cache=no_cache
        )
        manifest = expected_manifest(
            fingerprint=embedder.fingerprint if embedder else "none",
            provider="hash" if embedder else "none",
            model="",
            mode="",
            chunking=self.chunking,
            linking=LinkOptions(),
            part_tokens=256,
        )
        with closing(SqliteWriter(self.root, rebuild=full)) as writer:
            report = build(self.root, writer, embedder, options, manifest, progress=progress)
            writer.write_derived()
        return report

    def texts_embedded(self) -> list[str]:
        return [text for call in self.embedder.calls for text in call] if self.embedder else []

    def found(self, words: str) -> set[str]:
        """Paths whose chunks hold one of the words."""
        with closing(SqliteReader(self.root)) as reader:
            expression = " OR ".join(f'"{word}"' for word in words.split())
            ids = [i for i, _ in reader.lexical(expression, depth=999, weights=COLUMN_WEIGHTS)]
            return {chunk.path for chunk in reader.chunks(ids).values()}

    def near(self, text: str) -> str:
        """Path of the chunk whose vector is nearest."""
        with closing(SqliteReader(self.root)) as reader:
            embedder = HashEmbedder()
            ((chunk_id, _),) = reader.vector(embedder.embed_query(text), depth=1)
            return reader.chunks([chunk_id])[chunk_id].path

    def status(self, path: str) -> str | None:
        with closing(SqliteReader(self.root)) as reader:
            row = reader.file(path)
            return row.status if row else None

    def paths(self) -> list[str]:
        with closing(SqliteReader(self.root)) as reader:
            return list(reader.files())


@pytest.fixture
def bench(tmp_path: Path, later: None) -> Bench:
    root = tmp_path / "corpus"
    root.mkdir()
    return Bench(root)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs read the clock ten seconds ahead, so that no file is too young to be trusted."""
    clock = time.time_ns
    monkeypatch.setattr("ragx.indexing.build.time.time_ns", lambda: clock() + 10_000_000_000)


def sections(name: str, n: int = 5, words: int = 30) -> str:
    """A Markdown file of n chunks, each with a word of its own."""
    return "".join(
        f"# {name} part {i}\n\n{f'{name}word{i} filler{i} ' * (words // 2)}\n\n" for i in range(n)
    )


def refuse(*words: str) -> Callable[[str], ProviderError | None]:
    def fail(text: str) -> ProviderError | None:
        return next((BadEmbedding(f"no vector for {w}") for w in words if w in text), None)

    return fail


# What costs nothing.


def test_first_run_reads_and_embeds_everything_once(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("sub/b.md", sections("beta"))
    bench.write("c.md", sections("alpha"))  # a copy within the same run
    report = bench.run()
    assert (report.files_total, report.files_indexed, report.files_read) == (3, 3, 3)
    assert (report.files_unchanged, report.files_deleted, report.failed) == (0, 0, [])
    assert report.committed
    texts = bench.texts_embedded()
    assert len(texts) == len(set(texts)) == report.embedded
    assert report.chunks_added == 15
    assert report.embedded == 10
    assert bench.found("alphaword3") == {"a.md", "c.md"}
    assert bench.near("betaword2 filler2") == "sub/b.md"


def test_an_unchanged_tree_is_neither_read_nor_embedded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("empty.md", "")
    bench.write("blank.md", " \n\n")
    bench.write("bin.md", b"\x00\x01\x02")
    bench.run()
    opened: list[str] = []
    real = os.open

    def spy(path: str | Path, *args: int, **kwargs: int) -> int:
        opened.append(Path(path).name)
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", spy)
    report = bench.run()
    assert [name for name in opened if name.endswith(".md")] == []
    assert (report.files_read, report.files_unchanged, report.embedded) == (0, 3, 0)
    assert bench.texts_embedded() == []
    assert report.skipped == {"binary": 1}
    assert not report.committed


def test_files_younger_than_two_seconds_are_read_again_but_not_embedded(tmp_path: Path) -> None:
    young = Bench(tmp_path)  # without the clock of the other tests
    young.write("a.md", sections("alpha"))
    young.run()
    report = young.run()
    assert (report.files_read, report.files_unchanged, report.embedded) == (1, 1, 0)
    assert young.texts_embedded() == []


def test_an_edit_of_equal_size_and_restored_mtime_is_seen(tmp_path: Path) -> None:
    young = Bench(tmp_path)
    path = young.write("a.md", "first\n")
    stat = path.stat()
    young.run()
    path.write_text("other\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    young.run()
    assert young.found("other") == {"a.md"}
    assert young.found("first") == set()


def test_touch_costs_a_read_and_no_embedding(bench: Bench) -> None:
    """HOSTILE: `touch **`, `git checkout`, clone to another path: no embedding is paid twice."""
    for name in "abc":
        bench.write(f"{name}.md", sections(name))
    bench.run()
    for name in "abc":
        os.utime(bench.root / f"{name}.md")
    report = bench.run()
    assert (report.files_read, report.files_unchanged, report.embedded) == (3, 3, 0)
    assert (report.chunks_added, report.chunks_deleted) == (0, 0)
    assert bench.texts_embedded() == []
    assert bench.run().files_read == 0  # the new stat is remembered


def test_a_renamed_directory_and_a_copied_file_cost_no_embedding(bench: Bench) -> None:
    bench.write("old/a.md", sections("alpha"))
    bench.write("old/deep/b.md", sections("beta"))
    bench.write("c.md", sections("gamma"))
    bench.run()
    (bench.root / "old").rename(bench.root / "new")
    shutil.copy(bench.root / "c.md", bench.root / "copy.md")
    report = bench.run()
    assert bench.texts_embedded() == []
    assert report.embedded == 0
    assert (report.files_indexed, report.files_deleted) == (3, 2)
    assert bench.paths() == ["c.md", "copy.md", "new/a.md", "new/deep/b.md"]
    assert bench.found("betaword1") == {"new/deep/b.md"}


def test_a_folder_moved_out_and_in_costs_no_embedding(bench: Bench, tmp_path: Path) -> None:
    """HOSTILE: a branch switched back and forth; a folder moved out and in."""
    bench.write("sub/a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    (bench.root / "sub").rename(tmp_path / "outside")
    assert bench.run().files_deleted == 1
    assert bench.found("alphaword1") == set()
    (tmp_path / "outside").rename(bench.root / "sub")
    report = bench.run()
    assert (report.files_indexed, report.embedded) == (1, 0)
    assert bench.found("alphaword1") == {"sub/a.md"}


def test_one_edit_embeds_only_what_changed(bench: Bench) -> None:
    text = sections("alpha", n=8)
    bench.write("a.md", text)
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.write("a.md", text.replace("alphaword3", "omegaword3"))
    report = bench.run()
    (embedded,) = bench.texts_embedded()
    assert "omegaword3" in embedded
    assert (report.files_read, report.files_indexed, report.files_unchanged) == (1, 1, 1)
    assert (report.chunks_added, report.chunks_deleted, report.cached) == (1, 1, 7)
    assert bench.found("omegaword3") == {"a.md"}
    assert bench.found("alphaword3") == set()


def test_a_clone_to_another_path_pays_nothing_with_the_index_beside_it(
    bench: Bench, tmp_path: Path
) -> None:
    bench.write("a.md", sections("alpha"))
    bench.run()
    clone = Bench(tmp_path / "clone")
    shutil.copytree(bench.root, clone.root)
    report = clone.run()
    assert (report.files_read, report.files_unchanged, report.embedded) == (1, 1, 0)


# Files that fail.


def test_a_failing_text_fails_only_its_file(bench: Bench) -> None:
    """HOSTILE: NaN for one harmless text in a batch of 32: only that one may fail, and loudly."""
    for name in "abcdef":
        bench.write(f"{name}.md", sections(name))
    bench.embedder = HashEmbedder(fail=refuse("cword2"), batch_size=32)
    report = bench.run()
    assert [(failure.path, failure.code) for failure in report.failed] == [
        ("c.md", "bad_embedding")
    ]
    assert report.files_indexed == 5
    assert report.committed
    assert bench.status("c.md") == "unembedded"
    # New, and failed: its words are found all the same, its other vectors too.
    assert bench.found("cword2") == {"c.md"}
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.unembedded(9) == (1, ["c.md"])
    # Tried again next time though nothing changed, and only what is missing.
    again = bench.run()
    assert [failure.path for failure in again.failed] == ["c.md"]
    assert all("cword2" in text for text in bench.texts_embedded())
    bench.embedder = HashEmbedder()
    mended = bench.run()
    assert (mended.failed, mended.files_indexed, mended.embedded) == ([], 1, 1)
    assert bench.status("c.md") == "ok"
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.unembedded(9) == (0, [])


def test_the_version_before_a_failed_one_stays(bench: Bench) -> None:
    text = sections("alpha")
    bench.write("a.md", text)
    bench.run()
    bench.write("a.md", text.replace("alphaword1", "poison"))
    bench.embedder = HashEmbedder(fail=refuse("poison"))
    report = bench.run()
    assert [failure.path for failure in report.failed] == ["a.md"]
    assert bench.found("alphaword1") == {"a.md"}
    assert bench.found("poison") == set()
    assert bench.status("a.md") == "failed"
    assert bench.near("alphaword1 filler1") == "a.md"
    # Back to the old text: all is well again, and free.
    bench.write("a.md", text)
    report = bench.run()
    assert (report.failed, report.embedded) == ([], 0)
    assert bench.status("a.md") == "ok"


def test_a_copy_of_a_failing_text_fails_too_and_is_asked_once(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("alpha"))
    bench.embedder = HashEmbedder(fail=refuse("alphaword2"), batch_size=1)
    report = bench.run()
    assert [failure.path for failure in report.failed] == ["a.md", "b.md"]
    assert sum("alphaword2" in text for text in bench.texts_embedded()) == 1


def test_a_new_file_that_goes_on_failing_is_found_by_its_newest_words(bench: Bench) -> None:
    bench.embedder = HashEmbedder(fail=refuse("poison"))
    bench.write("a.md", "poison and the first draft\n")
    bench.run()
    bench.write("a.md", "poison and the second version\n")
    bench.run()
    assert bench.found("second") == {"a.md"}
    assert bench.found("draft") == set()


def test_a_full_run_keeps_the_old_version_of_what_fails(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.write("a.md", "poison\n")
    bench.embedder = HashEmbedder(fail=refuse("poison"))
    report = bench.run(full=True)
    assert [failure.path for failure in report.failed] == ["a.md"]
    assert bench.found("alphaword1") == {"a.md"}
    assert bench.found("betaword1") == {"b.md"}
    assert bench.near("alphaword1 filler1") == "a.md"


def test_a_server_that_is_down_commits_nothing_and_keeps_what_was_paid(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.run()
    for name in "bcdefg":
        bench.write(f"{name}.md", sections(name))
    served: list[str] = []

    def down(text: str) -> ProviderError | None:
        served.append(text)
        return ProviderUnavailable("refused") if len(served) > 12 else None

    bench.embedder = HashEmbedder(fail=down, batch_size=1, workers=1)
    with pytest.raises(ProviderUnavailable):
        bench.run()
    assert bench.paths() == ["a.md"]
    bench.embedder = HashEmbedder()
    report = bench.run()
    assert report.embedded <= 30 - 12
    assert bench.paths() == [f"{name}.md" for name in "abcdefg"]


class Stop(Exception):
    """What a test raises in the middle of a run."""


def interrupt_after(n: int) -> Callable[[Progress], None]:
    def progress(now: Progress) -> None:
        if now.embedded >= n:
            raise Stop

    return progress


def test_a_long_run_that_dies_has_saved_most_of_what_was_paid(bench: Bench) -> None:
    """HOSTILE: Interrupted at any point: the next run embeds only the rest."""
    for i in range(40):
        bench.write(f"f{i:02}.md", sections(f"w{i}x", n=20))
    with pytest.raises(Stop):
        bench.run(progress=interrupt_after(700))
    with pytest.raises(RagxError):
        bench.paths()  # nothing was committed
    report = bench.run()
    assert report.embedded + report.cached == 800
    assert report.cached >= 512


@pytest.mark.parametrize("kind", [Stop, KeyboardInterrupt])
def test_an_interrupted_run_pays_nothing_twice(bench: Bench, kind: type[BaseException]) -> None:
    for i in range(10):
        bench.write(f"f{i}.md", sections(f"w{i}x", n=20))
    seen = 0

    def progress(now: Progress) -> None:
        nonlocal seen
        seen = now.embedded
        if seen >= 96:
            raise kind

    with pytest.raises(kind):
        bench.run(progress=progress)
    report = bench.run()
    assert report.cached >= seen


def test_a_failed_full_run_keeps_the_old_index(bench: Bench) -> None:
    """HOSTILE: A failed `--full` keeps the old index."""
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    (bench.root / "b.md").unlink()
    bench.write("c.md", sections("gamma"))
    bench.embedder = HashEmbedder(fail=lambda _: ProviderUnavailable("refused"))
    with pytest.raises(ProviderUnavailable):
        bench.run(full=True)
    assert bench.paths() == ["a.md", "b.md"]
    assert bench.found("betaword1") == {"b.md"}


# Files that move under the reader.


def _on_read(
    monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[Path], None], times: int = 1
) -> None:
    """Do something to a file the moment it is opened."""
    real = os.open
    left = [times]

    def spy(path: str | Path, *args: int, **kwargs: int) -> int:
        if Path(path).name == name and left[0]:
            left[0] -= 1
            act(Path(path))
        return real(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", spy)


def test_a_file_that_vanishes_before_it_is_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOSTILE: a file that vanishes while being read."""
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.write("a.md", "changed\n")
    with monkeypatch.context() as patch:
        _on_read(patch, "a.md", Path.unlink)
        report = bench.run()
    assert report.failed == []
    assert report.skipped == {"vanished": 1}
    assert report.files_deleted == 1
    assert bench.paths() == ["b.md"]


def test_a_directory_that_becomes_a_file_before_it_is_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a/x.md", sections("alpha"))
    bench.write("b.md", sections("beta"))

    def swap(path: Path) -> None:
        shutil.rmtree(path.parent)
        path.parent.write_text("now a file")

    with monkeypatch.context() as patch:
        _on_read(patch, "x.md", swap)
        bench.run()
    report = bench.run()
    assert report.failed == []
    assert bench.paths() == ["b.md"]


@pytest.mark.parametrize("n_edits", [1, 2])
def test_a_file_edited_while_it_is_read_is_read_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, n_edits: int
) -> None:
    """HOSTILE: A file edited *during* the run."""
    bench.write("a.md", "first\n")
    real = os.fstat
    left = [n_edits]

    def edit_between(fd: int) -> os.stat_result:
        result = real(fd)
        if left[0] and os.readlink(f"/proc/self/fd/{fd}").endswith("a.md"):
            left[0] -= 1
            with (bench.root / "a.md").open("a") as handle:
                handle.write(f"more{left[0]}\n")
        return result

    with monkeypatch.context() as patch:
        patch.setattr("ragx.indexing.build.os.fstat", edit_between)
        report = bench.run()
    assert report.failed == []
    bench.run()
    with closing(SqliteReader(bench.root)) as reader:
        (chunk,) = reader.chunks_of("a.md")
        assert chunk.text.split() == (bench.root / "a.md").read_text().split()


def test_a_file_that_never_holds_still_fails_alone(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("log.txt", "line\n")
    bench.run()
    real = os.fstat
    counter = iter(range(10**6))

    def never_still(fd: int) -> os.stat_result:
        if os.readlink(f"/proc/self/fd/{fd}").endswith("log.txt"):
            with (bench.root / "log.txt").open("a") as handle:
                handle.write(f"x{next(counter)}\n")
        return real(fd)

    bench.write("log.txt", "line two\n")
    with monkeypatch.context() as patch:
        patch.setattr("ragx.indexing.build.os.fstat", never_still)
        report = bench.run()
    assert [(failure.path, failure.code) for failure in report.failed] == [("log.txt", "changing")]
    assert bench.found("alphaword1") == {"a.md"}
    assert bench.found("line") == {"log.txt"}  # the old version
    assert bench.run().failed == []
    assert bench.found("two") == {"log.txt"}


@pytest.mark.parametrize("known", [False, True])
def test_a_file_that_may_not_be_read(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, known: bool
) -> None:
    """HOSTILE: mode 000. Permissions do not bind the superuser, so the refusal is simulated."""
    if known:
        bench.write("a.md", "alpha\n")
        bench.run()
    bench.write("a.md", "beta now\n")
    bench.write("b.md", "gamma\n")

    def deny(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patch:
        _on_read(patch, "a.md", deny)
        report = bench.run()
    assert [(failure.path, failure.code) for failure in report.failed] == [("a.md", "unreadable")]
    assert bench.found("gamma") == {"b.md"}
    assert bench.found("alpha") == ({"a.md"} if known else set())
    assert bench.status("a.md") == "failed"
    assert bench.run().failed == []
    assert bench.found("beta") == {"a.md"}


def _deny_listing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    real = os.scandir

    def deny(path: str) -> object:
        if os.path.basename(os.fspath(path)) == name:
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    monkeypatch.setattr("ragx.indexing.scan.os.scandir", deny)


def test_a_directory_that_may_not_be_listed_keeps_its_files(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOSTILE: directory without x."""
    bench.write("dark/a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    with monkeypatch.context() as patch:
        _deny_listing(patch, "dark")
        report = bench.run()
    assert [(failure.path, failure.code) for failure in report.failed] == [("dark/", "unreadable")]
    assert bench.found("alphaword1") == {"dark/a.md"}


def test_a_full_run_keeps_the_files_of_a_directory_it_cannot_list(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.write("dark/a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    with monkeypatch.context() as patch:
        _deny_listing(patch, "dark")
        report = bench.run(full=True)
    assert [failure.path for failure in report.failed] == ["dark/"]
    assert bench.found("alphaword1") == {"dark/a.md"}


# What is left out.


def test_binary_and_secret_files_are_remembered_and_not_read_again(bench: Bench) -> None:
    """HOSTILE: Secrets: tokens are left out and reported."""
    bench.write("a.md", "alpha\n")
    bench.write("pic.md", b"\x89PNG\r\n\x1a\n\0\0")
    body = base64.encodebytes(random.Random(1).randbytes(600)).decode()
    kind = "RSA PRIVATE KEY"
    bench.write("key.txt", f"-----BEGIN {kind}-----\n{body}-----END {kind}-----\n")
    report = bench.run()
    assert report.skipped == {"binary": 1, "secret": 1}
    assert sorted(report.skipped_paths) == [("key.txt", "secret"), ("pic.md", "binary")]
    assert report.failed == []
    assert report.files_indexed == 1
    again = bench.run()
    assert again.skipped == {"binary": 1, "secret": 1}
    assert again.files_read == 0
    assert bench.found("BEGIN PRIVATE") == set()


def test_a_file_that_becomes_binary_or_secret_loses_its_rows(bench: Bench) -> None:
    bench.write("a.md", "alpha zebra\n")
    bench.write("b.md", "beta zebra\n")
    bench.run()
    bench.write("a.md", b"\0\1\2zebra")
    bench.write("b.md", "ghp_" + "aB3dE5fG7hI9jK1lM2nO4pQ6rS8tU0vW2xY4" + "\n")
    report = bench.run()
    assert report.skipped.get("binary") == 1
    assert report.skipped.get("secret") == 1
    assert bench.found("zebra") == set()
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.counts().chunks == reader.counts().postings == 0
    bench.write("a.md", "alpha zebra\n")
    bench.run()
    assert bench.found("zebra") == {"a.md"}


def test_what_is_excluded_later_is_gone_after_the_next_run(bench: Bench) -> None:
    """HOSTILE: An exclude added later: rows of the excluded file are gone after the next run."""
    bench.write("a.md", "alpha\n")
    bench.write("drafts/b.md", "beta\n")
    bench.write("c.txt", "gamma\n")
    bench.run()
    bench.scan = ScanOptions(exclude=("drafts/",), include=("*.md",))
    report = bench.run()
    assert report.files_deleted == 2
    assert bench.paths() == ["a.md"]
    assert bench.found("beta gamma") == set()
    bench.scan = ScanOptions()
    report = bench.run()
    assert (report.files_indexed, report.embedded) == (2, 0)


def test_deleted_ignored_and_grown_files_go(bench: Bench) -> None:
    for name in ("deleted", "ignored", "grown", "kept"):
        bench.write(f"{name}.md", f"{name} zebra\n")
    bench.run()
    (bench.root / "deleted.md").unlink()
    bench.write(".gitignore", "ignored.md\n")
    (bench.root / ".git").mkdir()
    bench.write("grown.md", "x " * 600)
    bench.scan = ScanOptions(max_file_bytes=1000)
    bench.run()
    assert bench.paths() == ["kept.md"]
    assert bench.found("zebra") == {"kept.md"}


def test_a_file_replaced_by_a_directory_and_back(bench: Bench) -> None:
    bench.write("a.md", "alpha zebra\n")
    bench.run()
    (bench.root / "a.md").unlink()
    bench.write("a.md/b.md", "beta zebra\n")
    bench.run()
    assert bench.found("zebra") == {"a.md/b.md"}
    shutil.rmtree(bench.root / "a.md")
    bench.write("a.md", "alpha zebra\n")
    bench.run()
    assert bench.found("zebra") == {"a.md"}


def test_everything_deleted(bench: Bench) -> None:
    """HOSTILE: Delete everything."""
    for name in "abc":
        bench.write(f"{name}.md", sections(name))
    bench.run()
    for path in bench.root.glob("*.md"):
        path.unlink()
    report = bench.run()
    assert (report.files_deleted, report.chunks_deleted) == (3, 15)
    assert bench.paths() == []
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.vector(HashEmbedder().embed_query("x"), depth=5) == []


# Named files.


def test_only_named_files_are_looked_at(bench: Bench) -> None:
    bench.write("a.md", "alpha\n")
    bench.write("b.md", "beta\n")
    bench.write("sub/c.md", "gamma\n")
    bench.write("sub/d.md", "delta\n")
    bench.run()
    for name in ("a.md", "b.md", "sub/c.md", "sub/d.md", "new.md"):
        bench.write(name, f"changed {name}\n")
    (bench.root / "sub/d.md").unlink()
    report = bench.run(only=["a.md", "sub/"])
    assert (report.files_indexed, report.files_deleted) == (2, 1)
    assert bench.found("changed") == {"a.md", "sub/c.md"}
    assert bench.found("beta") == {"b.md"}


def test_a_named_file_that_is_not_there_or_left_out_is_said(bench: Bench) -> None:
    bench.write("a.md", "alpha\n")
    bench.write("LICENSE.md", "licence\n")
    with pytest.raises(UsageError) as caught:
        bench.run(only=["nope.md"])
    assert "nope.md" in caught.value.message
    with pytest.raises(UsageError) as caught:
        bench.run(only=["LICENSE.md"])
    assert "excluded" in caught.value.message


def test_force_indexes_again_and_pays_nothing(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    report = bench.run(force=["a.md"])
    assert (report.files_indexed, report.files_read, report.embedded) == (1, 1, 0)
    assert report.cached == 5
    report = bench.run(force=["a.md"], no_cache=True)
    assert report.embedded == 5
    assert (report.chunks_added, report.chunks_deleted) == (0, 0)


# Settings.


def test_other_settings_stop_an_incremental_run(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.run()
    bench.chunking = ChunkOptions(size_tokens=90)
    with pytest.raises(ManifestMismatch) as caught:
        bench.run()
    assert "chunking.size_tokens" in caught.value.message
    assert "'40'" in caught.value.message
    assert "'90'" in caught.value.message
    assert "--full" in caught.value.hint
    bench.run(full=True)
    assert bench.run().files_unchanged == 1


def test_a_change_of_model_needs_a_full_run_and_leaves_one_space(bench: Bench) -> None:
    """HOSTILE: never two vector spaces in one index."""
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.embedder = HashEmbedder(dimension=64)
    with pytest.raises(ManifestMismatch):
        bench.run()
    report = bench.run(full=True)
    assert report.embedded == 10
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.dimension() == 64
        assert reader.counts().vectors == 10


def test_a_full_run_with_another_model_that_breaks_off_keeps_the_old_one(bench: Bench) -> None:
    """HOSTILE: Model changed in the middle of a re-embed."""
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.embedder = HashEmbedder(
        dimension=64, fail=lambda t: ProviderUnavailable("down") if "beta" in t else None, workers=1
    )
    with pytest.raises(ProviderUnavailable):
        bench.run(full=True)
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.dimension() == 256
        assert reader.counts().vectors == 10
    assert bench.near("betaword1 filler1") == "b.md"


class SameName(HashEmbedder):
    """A server whose model was exchanged behind the same name."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension=dimension)
        self.fingerprint = "server:model"


def test_a_model_exchanged_behind_its_name_is_noticed(bench: Bench) -> None:
    bench.embedder = SameName(256)
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.write("a.md", sections("gamma"))
    bench.embedder = SameName(128)
    with pytest.raises(ManifestMismatch):
        bench.run()
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.dimension() == 256


def test_a_full_run_mends_an_exchanged_model(bench: Bench) -> None:
    bench.embedder = SameName(256)
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    bench.run()
    bench.write("a.md", sections("gamma"))
    bench.embedder = SameName(128)
    with pytest.raises(ManifestMismatch) as caught:
        bench.run(full=True)  # its stored vectors are the old model's
    assert "--no-cache" in caught.value.hint
    bench.run(full=True, no_cache=True)
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.dimension() == 128
        assert reader.counts().vectors == 10


def test_without_an_embedder_everything_but_vectors_is_there(bench: Bench) -> None:
    bench.embedder = None
    bench.write("a.md", sections("alpha"))
    report = bench.run()
    assert (report.files_indexed, report.embedded, report.cached) == (1, 0, 0)
    assert bench.found("alphaword1") == {"a.md"}
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.counts().vectors == 0
        assert reader.vector(np.ones(4, np.float32), depth=3) == []


def test_from_vectors_to_none_and_back(bench: Bench) -> None:
    bench.write("a.md", sections("alpha"))
    bench.run()
    embedder, bench.embedder = bench.embedder, None
    with pytest.raises(ManifestMismatch):
        bench.run()
    bench.run(full=True)
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.counts().vectors == 0
        assert reader.dimension() == 0
    bench.embedder = embedder
    report = bench.run(full=True)
    assert (report.embedded, report.cached) == (0, 5)


def test_limits_of_the_model_hold_for_every_text_it_is_given(bench: Bench) -> None:
    bench.embedder = HashEmbedder(max_tokens=24)
    bench.write("a.md", sections("alpha", words=120))
    bench.write("b.txt", "word " * 500)
    report = bench.run()
    assert report.failed == []
    assert all(bench.embedder.count_tokens(text) <= 24 for text in bench.texts_embedded())
    with closing(SqliteReader(bench.root)) as reader:
        assert reader.counts().vectors == reader.counts().chunks


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_a_vector_that_is_none_fails_its_file(bench: Bench, bad: float) -> None:
    class Broken(HashEmbedder):
        def embed_documents(self, texts):
            rows = super().embed_documents(texts)
            for i, text in enumerate(texts):
                if "alphaword2" in text:
                    rows[i] = bad
            return rows

    bench.embedder = Broken()
    bench.write("a.md", sections("alpha"))
    bench.write("b.md", sections("beta"))
    report = bench.run()
    assert [failure.path for failure in report.failed] == ["a.md"]


# Progress.


def test_progress_reaches_its_end_and_never_goes_back(bench: Bench) -> None:
    for i in range(12):
        bench.write(f"f{i}.md", sections(f"w{i}x"))
    seen: list[Progress] = []
    report = bench.run(progress=seen.append)
    assert seen[-1].files_done == seen[-1].files_total == 12
    assert seen[-1].bytes_done == seen[-1].bytes_total
    assert seen[-1].embedded == report.embedded
    for one, other in itertools.pairwise(seen):
        assert one.files_done <= other.files_done
        assert one.bytes_done <= other.bytes_done
        assert one.embedded <= other.embedded


def test_notes_name_what_was_assumed(bench: Bench) -> None:
    bench.write("old.md", b"price \x96 5\n")
    report = bench.run()
    ((path, note),) = report.notes
    assert path == "old.md"
    assert "cp1252" in note
    assert bench.found("price") == {"old.md"}
