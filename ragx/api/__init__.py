"""The library: open a corpus, bring its index up to date, ask it, look into it.

    corpus = open_corpus(Path("notes"))
    corpus.index(IndexRequest())
    answer = corpus.search(QueryRequest("why did we switch build tools?"))

| module  | holds                                             |
|---------|---------------------------------------------------|
| corpus  | everything that is done with one corpus           |
| options | its settings as the layers below take them        |
| health  | does everything that is configured work?          |
| machine | what this machine has: memory, programs, servers  |
| catalog | models worth having, by what suits a machine      |
| setup   | first settings, and models: plan, then apply      |
| learned | what servers have shown they can take             |
| asking  | evidence for a chat model, and what it cites      |
| mapping | the graph as a map, to be looked at               |
| kept    | an embedder that stays from run to run            |
| reading | chunks and lines as they were indexed             |
| warm    | a corpus whose models stay loaded between calls   |
| watching | an index that follows its files                  |

Nothing here prints.
"""

from __future__ import annotations

from ragx.api.corpus import (
    DOCUMENTS_HINT,
    Answer,
    AskRequest,
    ChunkResult,
    ChunkView,
    CitationState,
    Community,
    Comparison,
    ContextLines,
    Corpus,
    CorpusMap,
    Draft,
    DraftedQuery,
    DraftRequest,
    EvalRequest,
    Evaluation,
    Evidence,
    EvidencePack,
    EvidenceRequest,
    FileResult,
    FileView,
    Filters,
    GroundedAnswer,
    IndexRequest,
    Lead,
    Neighbour,
    Overview,
    OverviewRequest,
    Passage,
    QueryRequest,
    Reading,
    ReadRequest,
    Status,
    Surroundings,
    Topic,
    Way,
    excerpt,
    is_exclusion,
    locator_document,
    open_corpus,
    parse_filters,
    query_terms,
    shorten,
    spoken_locator,
)

__all__ = [
    "DOCUMENTS_HINT",
    "Answer",
    "AskRequest",
    "ChunkResult",
    "ChunkView",
    "CitationState",
    "Community",
    "Comparison",
    "ContextLines",
    "Corpus",
    "CorpusMap",
    "Draft",
    "DraftRequest",
    "DraftedQuery",
    "EvalRequest",
    "Evaluation",
    "Evidence",
    "EvidencePack",
    "EvidenceRequest",
    "FileResult",
    "FileView",
    "Filters",
    "GroundedAnswer",
    "IndexRequest",
    "Lead",
    "Neighbour",
    "Overview",
    "OverviewRequest",
    "Passage",
    "QueryRequest",
    "ReadRequest",
    "Reading",
    "Status",
    "Surroundings",
    "Topic",
    "Way",
    "excerpt",
    "is_exclusion",
    "locator_document",
    "open_corpus",
    "parse_filters",
    "query_terms",
    "shorten",
    "spoken_locator",
]
