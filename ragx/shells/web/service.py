"""What the page asks, and the reply: a status and a JSON document. Knows nothing of sockets.

Each request sees the settings and the index as they are then; only the embedder stays, and the map
until the index changes. Questions are answered one at a time, as is the map drawn.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragx.errors import IndexMissing, RagxError, UsageError
from ragx.shells.cli import envelope
from ragx.shells.parameters import Parameter, check

if TYPE_CHECKING:
    from ragx.api import CorpusMap, QueryRequest
    from ragx.api.warm import WarmCorpus

__all__ = ["Reply", "Service"]

_MAX_ID = 2**53 - 1
_MOST_NEIGHBOURS = 300
_COMPRESSION = 5
_NONE_SUCH = {"no_such_chunk", "no_such_community", "no_such_file"}

_BODY = (
    Parameter("text", "string", "The question in plain words.", required=True),
    Parameter("top", "integer", "Files wanted.", least=1, most=1000),
    Parameter(
        "mode",
        "string",
        "Which side searches.",
        default="hybrid",
        choices=("hybrid", "vector", "lexical"),
    ),
    Parameter("graph", "boolean", "Whether the graph counts; true without it."),
    Parameter("expand", "boolean", "Whether other wordings are searched."),
    Parameter("rerank", "boolean", "Whether a cross-encoder reads the best chunks."),
    Parameter("explain", "boolean", "Whether each chunk says why it is there."),
    Parameter("hops", "integer", "Steps through the graph at most.", least=0, most=10),
    Parameter("before", "integer", "Lines before a chunk.", least=0, most=1000),
    Parameter("after", "integer", "Lines after a chunk.", least=0, most=1000),
    Parameter("path", "array", "Globs; !GLOB takes out."),
    Parameter("file", "array", "Files by path."),
    Parameter("lang", "array", "Languages."),
    Parameter("kind", "array", "Kinds of file: code, docs, data."),
    Parameter("tag", "array", "Tags in front matter."),
    Parameter("since", "string", "YYYY, YYYY-MM or YYYY-MM-DD."),
    Parameter("until", "string", "YYYY, YYYY-MM or YYYY-MM-DD."),
    Parameter("source_version", "array", "Content hashes."),
    Parameter("temporal", "string", "Prefer by date.", choices=("recent", "oldest")),
)
_LISTS = frozenset(item.name for item in _BODY if item.kind == "array")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply: JSON as bytes, and packed where it is worth it; `tag` names this content."""

    status: int
    body: bytes
    packed: bytes | None = None
    tag: str = ""

    @classmethod
    def of(cls, document: Mapping[str, object], status: int = 200) -> Reply:
        """A document."""
        return cls(status, envelope.json_bytes(document))

    @classmethod
    def failed(cls, status: int, why: str) -> Reply:
        """A fault in one line."""
        return cls.of({"error": envelope.one_line(why)}, status)


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A map, and what it is the map of."""

    stamp: str
    map: CorpusMap
    reply: Reply


@dataclass(slots=True)
class Service:
    """Answers about one corpus; safe to call from many threads.

    Args:
        root: of the corpus.
        log: takes a line about each question and fault; it holds no text of questions or files.
    """

    root: Path
    log: Callable[[str], None] = envelope.tell
    _models: Any = None
    _drawn: _Drawn | None = None
    _drawing: Any = field(default_factory=threading.Lock, repr=False)
    _asking: Any = field(default_factory=threading.Lock, repr=False)
    _running: int = 0
    _counting: Any = field(default_factory=threading.Lock, repr=False)

    def __post_init__(self) -> None:
        from ragx.api.warm import WarmModels

        self._models = WarmModels()

    @property
    def busy(self) -> bool:
        """Whether a request is at work."""
        return self._running > 0

    def close(self) -> None:
        """Release the model."""
        self._models.close()

    def require_index(self) -> None:
        """Make sure that there is something to show before a browser is opened.

        Raises:
            RagxError: the settings or the index do not serve.
        """
        self._corpus().stamp()

    def warm(self) -> None:
        """Draw the map and load the model before somebody waits for them."""
        self._replied("warm", self._graph)
        self._replied("warm", self._load_model)

    def graph(self) -> Reply:
        """`ragx.graph.v1`; the same reply as long as the index stays as it is."""
        return self._replied("graph", self._graph)

    def chunk(self, chunk_id: int) -> Reply:
        """`ragx.chunk.v1`, 404 for an unknown id."""
        return self._replied("chunk", lambda: self._chunk(chunk_id))

    def community(self, number: int) -> Reply:
        """`ragx.inspect.community.v1`, 404 for an unknown number."""
        return self._replied("community", lambda: self._community(number))

    def path(self, one: int, other: int) -> Reply:
        """`ragx.inspect.path.v1`, 404 for an unknown id."""
        return self._replied("path", lambda: self._path(one, other))

    def query(self, body: bytes) -> Reply:
        """`ragx.query.v3` with `elapsed_ms`; 400 for a body that cannot be meant."""
        started = time.monotonic()
        reply = self._replied("query", lambda: self._query(body), failure=502)
        self.log(f"web: query: {reply.status}, {1000 * (time.monotonic() - started):.0f} ms")
        return reply

    def _replied(self, what: str, run: Callable[[], Reply], failure: int = 500) -> Reply:
        with self._counting:
            self._running += 1
        try:
            return run()
        except RagxError as fault:
            reply = Reply.failed(_status(fault, failure), _said(fault))
        except Exception as fault:  # the shell's last resort: the page must hear of it
            if os.environ.get("RAGX_DEBUG"):
                import traceback

                traceback.print_exc(file=sys.stderr)
            said = f"internal error: {type(fault).__name__}: {fault}".rstrip(": ")
            reply = Reply.failed(500, f"{said}; run ragx web with RAGX_DEBUG=1 set, and report it")
        finally:
            with self._counting:
                self._running -= 1
        # A question has a line of its own, and what warming met is met again by who asks.
        if reply.status >= 500 and what not in ("query", "warm"):
            self.log(f"web: {what}: {reply.status}")
        return reply

    def _corpus(self) -> WarmCorpus:
        from ragx.api import open_corpus
        from ragx.api.warm import WarmCorpus
        from ragx.shells.cli.frame import home_directory

        return WarmCorpus.over(open_corpus(self.root, home=home_directory()), self._models)

    def _load_model(self) -> Reply:
        corpus = self._corpus()
        model = corpus.open_embedder(corpus.manifest())
        if model is not None:
            with self._asking:
                model.embed_query("ready")
            model.close()
        return Reply(204, b"")

    def _current(self, corpus: WarmCorpus) -> _Drawn:
        """The map of the index as it is, drawn if it has changed."""
        from ragx.shells.web.documents import graph_document

        with self._drawing:
            stamp = corpus.stamp()
            if self._drawn is None or self._drawn.stamp != stamp:
                drawn = corpus.map()
                body = envelope.json_bytes(graph_document(drawn))
                packed = gzip.compress(body, _COMPRESSION, mtime=0)
                import xxhash

                tag = xxhash.xxh3_128_hexdigest(body)
                self._drawn = _Drawn(stamp, drawn, Reply(200, body, packed, tag))
            return self._drawn

    def _graph(self) -> Reply:
        return self._current(self._corpus()).reply

    def _chunk(self, chunk_id: int) -> Reply:
        from ragx.shells.web.documents import chunk_document

        corpus = self._corpus()
        view = corpus.chunk(chunk_id, most=_MOST_NEIGHBOURS)
        around = corpus.surroundings(chunk_id, corpus.config.query.context_lines)
        return Reply.of(chunk_document(view, around, self._current(corpus).map))

    def _community(self, number: int) -> Reply:
        from ragx.api import Community
        from ragx.shells.cli.inspect import community_document

        corpus = self._corpus()
        drawn = self._current(corpus).map
        if drawn.grouping == "community":
            return Reply.of(community_document(*corpus.community(number)))
        # Directories stand in for communities.
        group = drawn.community(number)
        chunks = [node.chunk for node in drawn.nodes if node.community == number]
        if group is None:
            raise UsageError(f"no group {number}", code="no_such_community")
        ids = tuple(chunk.chunk_id for chunk in chunks)
        files = tuple(dict.fromkeys(chunk.path for chunk in chunks))
        found = Community(number, group.label, ids, files)
        return Reply.of(community_document(found, chunks))

    def _path(self, one: int, other: int) -> Reply:
        from ragx.shells.cli.inspect import path_document

        way = self._corpus().path_between(one, other)
        return Reply.of(path_document(str(one), str(other), way))

    def _query(self, body: bytes) -> Reply:
        from ragx.shells.cli.query import query_document
        from ragx.shells.cli.shares import Shares

        given = check("query", _BODY, _body(body))
        started = time.monotonic()
        corpus = self._corpus()
        request = _question(given, corpus)
        with self._asking:
            answer = corpus.search(request, notice=self.log)
        asked_around = given["before"] is not None or given["after"] is not None
        shares = Shares(corpus.config.query.max_chunk_chars, context_everywhere=asked_around)
        elapsed_ms = round(1000 * (time.monotonic() - started), 1)
        return Reply.of({**query_document(answer, request, shares), "elapsed_ms": elapsed_ms})


def _body(body: bytes) -> dict[str, Any]:
    """A request's body; one value stands for a list of one.

    Raises:
        UsageError: it is not one JSON object.
    """
    try:
        found = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise UsageError(f"the body is not JSON: {fault}", code="bad_body") from fault
    if not isinstance(found, dict):
        raise UsageError('the body must be an object such as {"text": "..."}', code="bad_body")
    return {
        key: [value] if key in _LISTS and isinstance(value, str) else value
        for key, value in found.items()
    }


def _question(given: Mapping[str, Any], corpus: WarmCorpus) -> QueryRequest:
    from ragx.api import QueryRequest, parse_filters

    settings = corpus.config.query
    around = settings.context_lines
    return QueryRequest(
        text=given["text"],
        top=settings.top if given["top"] is None else given["top"],
        mode=given["mode"],
        before=around if given["before"] is None else given["before"],
        after=around if given["after"] is None else given["after"],
        graph=given["graph"] is not False,
        hops=given["hops"],
        explain=bool(given["explain"]),
        texts=True,
        expand=bool(given["expand"]),
        rerank=bool(given["rerank"]),
        filters=parse_filters(
            paths=given["path"] or (),
            files=given["file"] or (),
            languages=given["lang"] or (),
            kinds=given["kind"] or (),
            tags=given["tag"] or (),
            since=given["since"] or "",
            until=given["until"] or "",
            source_versions=given["source_version"] or (),
        ),
        temporal=given["temporal"] or "",
    )


def _status(fault: RagxError, failure: int) -> int:
    if fault.code in _NONE_SUCH:
        return 404
    if isinstance(fault, UsageError):
        return 400
    # While an index is made anew there is none; that passes.
    return 503 if isinstance(fault, IndexMissing) and failure != 502 else failure


def _said(fault: RagxError) -> str:
    return f"{fault.message}; {fault.hint}" if fault.hint else fault.message
