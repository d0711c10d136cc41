"""Questions about a corpus, over small indexes whose topics are plain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragx.algo.chunking.base import ChunkOptions
from ragx.errors import MissingDependency, ProviderUnavailable, UsageError
from ragx.indexing.build import BuildOptions, build, expected_manifest
from ragx.indexing.scan import ScanOptions
from ragx.providers.base import Generator, Reply
from ragx.providers.fakes import HashEmbedder
from ragx.query.filters import Filters
from ragx.query.overview import Overview, OverviewRequest, run_overview, summaries_of
from ragx.store.base import LinkOptions
from ragx.store.communities import CommunityOptions
from ragx.store.sqlite import SqliteReader, SqliteWriter
from ragx.store.summaries import WrittenSummaries

ABOUT = "what is this about?"
OPTIONS = CommunityOptions()


def page(title: str, *sentences: str, links: str = "") -> str:
    return f"# {title}\n\n" + "\n\n".join(sentences) + f"\n\n{links}\n"


HARBOUR = {
    "README.md": page(
        "Isle", "The isle handbook is a collection of all that visitors ask.",
        "Its pages are kept by the people of the isle.",
    ),
    "boats/ferry.md": page(
        "Ferry", "The ferry carries cars and people to the island every day.",
        "Tickets for the ferry are sold on board.", links="See [boats](boats.md), [mail](mail.md).",
    ),
    "boats/boats.md": page(
        "Boats", "Every boat of the harbour is painted before the winter.",
        "The ferry is the largest boat of the harbour.", links="See [ferry](ferry.md).",
    ),
    "boats/mail.md": page(
        "Mail", "The mail boat follows the ferry to the island harbour.",
        links="See [ferry](ferry.md) and [boats](boats.md).",
    ),
    "bread/yeast.md": page(
        "Yeast", "Yeast turns the sugar of the dough into gas.",
        links="See [dough](dough.md) and [oven](oven.md).",
    ),
    "bread/dough.md": page(
        "Dough", "The dough of a good bread rests for a whole night.",
        links="See [yeast](yeast.md) and [oven](oven.md).",
    ),
    "bread/oven.md": page(
        "Oven", "The oven bakes bread at two hundred degrees.", links="See [yeast](yeast.md)."
    ),
}  # fmt: skip


class Place:
    """An index that can be asked for its topics."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.embedder: HashEmbedder | None = None

    def index(self, files: dict[str, str], *, vectors: bool = False) -> None:
        for path, text in files.items():
            full = self.root / path
            full.parent.mkdir(parents=True, exist_ok=True)
            full.write_text(text)
        self.embedder = HashEmbedder() if vectors else None
        chunking = ChunkOptions(size_tokens=60)
        manifest = expected_manifest(
            fingerprint=self.embedder.fingerprint if self.embedder else "none",
            provider="hash" if self.embedder else "none",
            model="",
            mode="",
            chunking=chunking,
            linking=LinkOptions(),
            part_tokens=256,
        )
        with closing(SqliteWriter(self.root)) as writer:
            build(self.root, writer, self.embedder, BuildOptions(ScanOptions(), chunking), manifest)
            writer.write_derived()

    def ask(
        self,
        text: str = ABOUT,
        *,
        open_generator: Callable[[], Generator] | None = None,
        written: WrittenSummaries | None = None,
        **request: object,
    ) -> Overview:
        with closing(SqliteReader(self.root)) as reader:
            return run_overview(
                reader,
                OverviewRequest(text, **request),  # type: ignore[arg-type]
                OPTIONS,
                embed=self.embedder.embed_query if self.embedder else None,
                open_generator=open_generator,
                written=written,
            )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("vectors", [False, True])
def test_the_whole_is_told_by_its_topics(place: Place, vectors: bool) -> None:
    place.index(HARBOUR, vectors=vectors)
    found = place.ask()
    assert found.whole
    assert found.grouped_by == "community"
    assert found.lead is not None
    assert found.lead.chunk.path == "README.md"
    assert found.lead.text.startswith("The isle handbook is a collection")
    assert found.n_files == len(HARBOUR)
    assert found.n_chunks == sum(topic.n_chunks for topic in place.ask(top=99).topics)
    first = found.topics[0]
    assert {path.split("/")[0] for path in first.files} == {"boats"}
    assert "ferry" in first.summary
    texts = " ".join(HARBOUR.values())
    for topic in found.topics:
        assert 1 <= len(topic.chunks) <= 2
        assert len({chunk.path for chunk in topic.chunks}) == len(topic.chunks)
        for sentence in filter(None, topic.summary.split(". ")):
            assert sentence.removesuffix(".") in texts
    scores = [topic.score for topic in found.topics]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("vectors", [False, True])
def test_a_question_with_a_subject_gets_the_topics_that_bear_on_it(
    place: Place, vectors: bool
) -> None:
    place.index(HARBOUR, vectors=vectors)
    found = place.ask("how is bread baked with yeast and dough?")
    assert not found.whole
    assert found.lead is None
    first = found.topics[0]
    assert {path.split("/")[0] for path in first.files} == {"bread"}
    assert first.chunks[0].path.startswith("bread/")
    assert found.stages["vector"] == ("used" if vectors else "off")
    assert found.stages["lexical"] == "used"


@pytest.mark.parametrize(
    "text",
    ["What is this about?", "main topics", "Worum geht es hier?", "¿De qué trata esto?", "?"],
)
def test_general_questions_need_no_model(place: Place, text: str) -> None:
    place.index(HARBOUR, vectors=True)

    def refuse(_: str) -> np.ndarray:
        raise AssertionError("asked")

    with closing(SqliteReader(place.root)) as reader:
        found = run_overview(reader, OverviewRequest(text), OPTIONS, embed=refuse)
    assert found.whole
    assert not OverviewRequest(text).wants_vector
    assert found.topics == place.ask().topics


def test_a_word_left_out_and_no_word_at_all(place: Place) -> None:
    place.index(HARBOUR)
    found = place.ask("bread -yeast")
    assert all("yeast" not in chunk.path for topic in found.topics for chunk in topic.chunks[:1])
    found = place.ask("zeppelin")
    assert found.whole
    assert "nothing bears on the question" in found.warnings[0]


def test_likeness_alone_is_said(place: Place) -> None:
    place.index(HARBOUR, vectors=True)
    assert "likeness alone" in place.ask("zeppelin").warnings[0]
    assert place.ask("zeppelin", vector=False).whole


def test_filters_bind(place: Place) -> None:
    place.index(HARBOUR, vectors=True)
    for text in (ABOUT, "ferry"):
        found = place.ask(text, filters=Filters(paths=("bread/",)))
        assert found.n_files == 3
        paths = {path for topic in found.topics for path in topic.files}
        paths |= {chunk.path for topic in found.topics for chunk in topic.chunks}
        assert paths == {path for path in HARBOUR if path.startswith("bread/")}
    nothing = place.ask(filters=Filters(paths=("nowhere/",)))
    assert nothing.topics == ()
    assert "--path nowhere/" in nothing.warnings[0]
    everything = place.ask(filters=Filters(paths=("**/*.md",)))
    assert everything == place.ask()


def test_top_is_a_limit_alone(place: Place) -> None:
    place.index(HARBOUR)
    every = place.ask(top=99).topics
    assert len(every) > 1
    for top in range(1, len(every) + 1):
        assert place.ask(top=top).topics == every[:top]


def test_what_hangs_on_nothing_is_grouped_by_directory(place: Place) -> None:
    place.index({
        f"{directory}/{name}.md": f"Every {name} of the {directory} is unlike all other ones.\n"
        for directory in ("north", "south") for name in ("apple", "pear", "plum")
    })  # fmt: skip
    found = place.ask()
    assert found.grouped_by == "directory"
    assert [topic.number for topic in found.topics] == [None, None]
    assert [topic.n_chunks for topic in found.topics] == [3, 3]
    assert [topic.label.split(":")[0] for topic in found.topics] == ["north/", "south/"]


def test_without_the_library_topics_are_directories(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.index(HARBOUR)

    def missing(*_: object) -> None:
        raise MissingDependency("communities need leidenalg", hint="pip install leidenalg")

    monkeypatch.setattr(SqliteReader, "communities", missing)
    found = place.ask()
    assert found.grouped_by == "directory"
    assert "topics are directories" in found.warnings[0]
    assert "pip install leidenalg" in found.warnings[0]
    assert {topic.label.split(":")[0] for topic in found.topics} >= {"boats/", "bread/"}


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize(
    "files",
    [
        {"one.md": "# One\n\nThere is one page and it says this alone.\n"},
        {
            f"copy{at}.md": "# Same\n\nAll of these pages say the very same thing.\n"
            for at in range(9)
        },
        {"data.json": '{"a": 1}', "more.json": '{"b": 2}'},
        {"a.md": "x\n"},
    ],
    ids=["one", "alike", "data", "tiny"],
)
def test_corpora_at_the_edge(place: Place, files: dict[str, str], vectors: bool) -> None:
    place.index(files, vectors=vectors)
    for text in (ABOUT, "page", "zeppelin"):
        found = place.ask(text)
        assert found.topics
        assert sum(topic.n_chunks for topic in found.topics) == found.n_chunks or not found.whole
        assert all(topic.label and topic.chunks and topic.files for topic in found.topics)


def test_an_empty_index_says_so(place: Place) -> None:
    place.index({"empty.md": ""})
    found = place.ask()
    assert (found.topics, found.n_chunks) == ((), 0)
    assert "the index is empty" in found.warnings[0]


def test_an_empty_question_is_refused(place: Place) -> None:
    place.index(HARBOUR)
    with pytest.raises(UsageError):
        place.ask("  ")


def test_code_names_what_it_defines(place: Place) -> None:
    place.index({
        "store/writer.py": '"""Write the boats of the harbour to disk."""\n\n'
        "class BoatWriter:\n    def write_boat(self, boat):\n        return boat\n",
        "store/reader.py": '"""Read the boats of the harbour from disk."""\n\n'
        "from store.writer import BoatWriter\n\n\ndef read_boats():\n    return BoatWriter()\n",
    })  # fmt: skip
    topics = place.ask(top=99).topics
    assert {"BoatWriter", "read_boats"} <= {name for topic in topics for name in topic.symbols}
    assert "the boats of the harbour" in topics[0].summary


def test_same_question_same_answer_in_every_order_of_indexing(tmp_path: Path) -> None:
    answers = []
    for name, order in (("a", sorted(HARBOUR)), ("b", sorted(HARBOUR, reverse=True))):
        place = Place(tmp_path / name)
        for path in order:  # one run for each file
            place.index({path: HARBOUR[path]}, vectors=True)
        answers.append([place.ask(), place.ask("bread and boats")])
    assert answers[0] == answers[1]


def test_inspect_shows_what_an_overview_shows(place: Place) -> None:
    place.index(HARBOUR)
    numbered = {topic.number: topic.summary for topic in place.ask(top=99).topics}
    numbered.pop(None, None)
    with closing(SqliteReader(place.root)) as reader:
        assert summaries_of(reader, OPTIONS, list(numbered)) == numbered  # type: ignore[arg-type]
        assert summaries_of(reader, OPTIONS, []) == {}


class Writer:
    """A chat model that writes what it is told to, and remembers what it was asked."""

    def __init__(self, reply: str = "It is about boats.", fails_at: int = 0) -> None:
        self.model = "writer"
        self.reply = reply
        self.asked: list[str] = []
        self._fails_at = fails_at

    def complete(
        self, system: str, prompt: str, *, max_tokens: int, temperature: float = 0.0
    ) -> str:
        self.asked.append(prompt)
        if len(self.asked) == self._fails_at:
            raise ProviderUnavailable("it is gone", hint="start it")
        return self.reply

    def chat(self, system: str, prompt: str, **_: object) -> Reply:
        raise NotImplementedError

    def models(self) -> tuple[str, ...]:
        return (self.model,)

    def close(self) -> None:
        """Nothing to release."""


def test_a_model_writes_summaries_once(place: Place) -> None:
    place.index(HARBOUR)
    model, written = Writer(), WrittenSummaries(place.root)
    found = place.ask(expand=True, open_generator=lambda: model, written=written)
    assert {(topic.summary, topic.by) for topic in found.topics} == {(model.reply, "model")}
    assert found.stages["expansion"] == "used"
    assert len(model.asked) == len(found.topics)
    written.close()
    again = place.ask(
        expand=True, open_generator=lambda: model, written=WrittenSummaries(place.root)
    )
    assert again == found
    assert len(model.asked) == len(found.topics)
    other = place.ask(open_generator=lambda: model)
    assert {topic.by for topic in other.topics} == {"extract"}


def test_a_text_that_changed_is_written_about_anew(place: Place) -> None:
    place.index(HARBOUR)
    model, written = Writer(), WrittenSummaries(place.root)
    place.ask(expand=True, open_generator=lambda: model, written=written)
    n = len(model.asked)
    place.index({"bread/oven.md": HARBOUR["bread/oven.md"].replace("two hundred", "ninety")})
    place.ask(expand=True, open_generator=lambda: model, written=written)
    assert len(model.asked) == n + 1
    assert "ninety" in model.asked[-1]


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_model_that_fails_costs_a_warning(place: Place, fails_at: int) -> None:
    place.index(HARBOUR)
    model = Writer(fails_at=fails_at)
    found = place.ask(expand=True, open_generator=lambda: model)
    assert len(model.asked) == fails_at  # not asked again
    assert [topic.by for topic in found.topics[: fails_at - 1]] == ["model"] * (fails_at - 1)
    assert {topic.by for topic in found.topics[fails_at - 1 :]} == {"extract"}
    assert found.stages["expansion"] == "failed"
    assert found.warnings == ("summaries are extracts: it is gone (start it)",)


@pytest.mark.parametrize("reply", ["", " \n", "```"])
def test_a_reply_that_says_nothing_is_a_failure(place: Place, reply: str) -> None:
    place.index(HARBOUR)
    found = place.ask(expand=True, open_generator=lambda: Writer(reply))
    assert found.stages["expansion"] == "failed"
    assert {topic.by for topic in found.topics} == {"extract"}


def test_a_long_reply_is_one_line_that_ends_with_a_sentence(place: Place) -> None:
    place.index(HARBOUR)
    reply = "\n".join(f"Sentence number {at} of the reply says a little more." for at in range(99))
    found = place.ask(expand=True, open_generator=lambda: Writer(reply))
    for topic in found.topics:
        assert "\n" not in topic.summary
        assert topic.summary.endswith("says a little more.")
        assert len(topic.summary) <= 420
