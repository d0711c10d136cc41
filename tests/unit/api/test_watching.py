"""Runs of one watch: what is said of them, and the model that stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragx.api import Corpus, IndexRequest, open_corpus
from ragx.api.watching import WatchTimes, watch_corpus
from ragx.errors import ProviderError, RagxError
from ragx.providers.base import Embedder
from ragx.types import BuildReport

TIMES = WatchTimes(quiet=0.05, polled=0.02, polled_share=1.0, retry=0.02)


class End(BaseException):
    """Ends a watch, as an interrupt does."""


def settings(root: Path, text: str) -> None:
    (root / "ragx.toml").write_text(text)


def test_the_embedder_is_opened_once_and_closed_at_the_end(
    tmp_path: Path, embedding_server, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings(tmp_path, f"[embeddings]\n{embedding_server.settings}")
    (tmp_path / "a.md").write_text("# A\n\nThe pelican landed.\n")
    opened: list[Embedder] = []
    original = Corpus.open_embedder

    def counted(self: Corpus, *args: object, **how: object) -> Embedder | None:
        embedder = original(self, *args, **how)  # type: ignore[arg-type]
        assert embedder is not None
        opened.append(embedder)
        return embedder

    monkeypatch.setattr(Corpus, "open_embedder", counted)
    reports: list[BuildReport] = []

    def ran(report: BuildReport, _seconds: float) -> None:
        reports.append(report)
        if len(reports) == 3:
            raise End
        (tmp_path / f"n{len(reports)}.md").write_text(f"# Note {len(reports)}\n")

    with pytest.raises(End):
        watch_corpus(
            lambda: open_corpus(tmp_path, env={}),
            IndexRequest(full=True),
            ran=ran,
            failed=lambda fault: pytest.fail(fault.message),
            hints=False,
            times=TIMES,
        )
    assert [report.files_indexed for report in reports] == [1, 1, 1]
    assert len(opened) == 1


def test_a_failure_is_told_once_and_so_is_its_end(tmp_path: Path) -> None:
    settings(tmp_path, '[embeddings]\nprovider = "none"\n')
    (tmp_path / "a.md").write_text("# A\n")
    told: list[object] = []
    tries = 0

    class Failing(Corpus):
        def index(self, *args: object, **how: object) -> BuildReport:
            nonlocal tries
            tries += 1
            if 1 < tries < 5:
                raise ProviderError("it is gone")
            if tries == 7:
                raise End
            return super().index(*args, **how)  # type: ignore[arg-type]

    def starts() -> None:
        # Every run finds something to do, but not always to tell.
        (tmp_path / "ragx.toml").write_text('[embeddings]\nprovider = "none"\n' + "\n" * tries)

    def failed(fault: RagxError) -> None:
        told.append(fault.message)

    def open_it() -> Corpus:
        corpus = open_corpus(tmp_path, env={})
        return Failing(corpus.root, corpus.loaded, corpus.env)

    with pytest.raises(End):
        watch_corpus(
            open_it,
            IndexRequest(),
            ran=lambda report, _: told.append(report.files_indexed),
            failed=failed,
            starts=starts,
            hints=False,
            times=TIMES,
        )
    assert tries == 7
    assert told == [1, "it is gone", 0]
