"""Every setting of ragx, in the order in which `ragx.toml` lists them."""

from __future__ import annotations

from typing import Literal

from ragx.config.rules import Auto, Choice, EnvName, Flag, Globs, Int, Real, Text, Url
from ragx.config.section import Section, key
from ragx.indexing.patterns import DEFAULT_EXCLUDE, DEFAULT_INCLUDE

__all__ = [
    "Chunking",
    "Communities",
    "Config",
    "Corpus",
    "Documents",
    "Embeddings",
    "Expansion",
    "Fusion",
    "Graph",
    "GraphWeights",
    "Query",
    "Rerank",
    "Rules",
    "Scoring",
    "Temporal",
    "Traversal",
]

_UNIT = Real(0, 1)
_RULE = Real(0, 10)


class Corpus(Section, about="Which files belong to the corpus."):
    include: tuple[str, ...] = key(
        Globs(at_least=1),
        DEFAULT_INCLUDE,
        "Files that count: gitignore-style globs; a pattern without a slash matches at any depth.",
    )
    exclude: tuple[str, ...] = key(
        Globs(), DEFAULT_EXCLUDE, "Files and directories left out; wins over include."
    )
    respect_gitignore: bool = key(Flag(), True, "Leave out what git ignores.")
    max_file_bytes: int = key(
        Int(1, 2**40), 10_485_760, "Larger files are skipped, and said so; see also documents."
    )
    max_files: int = key(Int(0, 2**31), 0, "More files than this are an error; 0 = no limit.")
    follow_symlinks: bool = key(Flag(), False, "Follow links that stay inside the root.")


class Documents(
    Section, about="What one PDF, office document, page, notebook, book or mail may cost."
):
    max_file_bytes: int = key(Int(1, 2**31), 33_554_432, "Larger documents are skipped.")
    max_chars: int = key(
        Int(1000, 2**31), 2_000_000, "Characters taken from one; what is left out is said."
    )
    max_blocks: int = key(
        Int(10, 2**31), 100_000, "Paragraphs, tables, ... taken from one; likewise."
    )
    max_expanded_bytes: int = key(
        Int(1024, 2**40), 268_435_456, "A document that unpacks to more is skipped."
    )
    timeout_s: float = key(Real(0, 3600, above=True), 60.0, "Longest that one may take to read.")
    max_memory_bytes: int = key(
        Int(2**26, 2**40), 1_073_741_824, "Most memory that reading one may take."
    )


class Chunking(Section, about="How files are cut. A change needs `ragx index --full`."):
    size_tokens: int | Literal["auto"] = key(
        Auto(Int(32, 8192)), "auto", "Size aimed at; auto = what suits the embedding model."
    )
    overlap: float = key(
        Real(0, 0.5), 0.15, "Share repeated between windows of one block too long for a chunk."
    )
    max_chunk_chars: int = key(Int(200, 1_000_000), 20_000, "Hard limit on a chunk's characters.")


class GraphWeights(Section, about="How much each kind of edge carries; 0 turns a kind off."):
    link: float = key(_UNIT, 1.0, "A link from one file to another.")
    mention: float = key(_UNIT, 1.0, "A file's name or path in running text.")
    # `import` is a Python keyword; the trailing underscore never shows in TOML.
    import_: float = key(_UNIT, 1.0, "An import or include between source files.")
    symbol: float = key(_UNIT, 1.0, "Use of a name that another chunk defines.")
    # These two find what the searches find anyway, and cost precision (research/graph.md).
    adjacent: float = key(_UNIT, 0.0, "The next chunk of the same file.")
    similar: float = key(
        _UNIT, 0.3, "Embeddings that lie close; only where fewer than 20 files are found."
    )


class Graph(Section, about="Edges between chunks."):
    k: int = key(Int(1, 100), 8, "Nearest neighbours linked per chunk or sub-chunk.")
    min_edge_sim: float = key(_UNIT, 0.55, "Least cosine of a similar edge.")
    edge_source: str = key(
        Choice("subchunk", "chunk"), "subchunk", "Compare whole chunks, or windows inside them."
    )
    subchunk_size_tokens: int = key(Int(16, 8192), 256, "Size of those windows.")
    near_dup_sim: float = key(
        _UNIT, 0.9, "Chunks at least this alike are copies: no edge between them."
    )
    weights: GraphWeights = GraphWeights()


class Traversal(Section, about="How a query spreads over the edges."):
    hops: int = key(Int(0, 10), 2, "Steps from a first hit; 0 = none.")
    decay: float = key(Real(0, 1, above=True), 0.7, "Heat kept per hop after the first.")
    query_floor: float = key(
        Real(-1, 1), 0.35, "Least similarity to the query of what a similar edge may bring in."
    )
    max_frontier: int = key(Int(1, 100_000), 150, "Chunks that may pass heat on, per hop.")
    cap: bool = key(Flag(), True, "Hold what heat lifts below the hit it came from.")


class Communities(Section, about="Groups of related chunks. Never makes an index out of date."):
    resolution: float = key(Real(0, 100, above=True), 1.0, "Higher = more and smaller groups.")
    seed: int = key(Int(0, 2**31 - 1), 42, "Same seed and rows, same groups.")


class Fusion(Section, about="How vector and word hits become one ranking."):
    method: str = key(
        Choice("weighted", "rrf"), "weighted", "Weighted sum of scores, or by rank alone."
    )
    vector_weight: float | Literal["auto"] = key(
        Auto(_UNIT),
        "auto",
        "Share of the vector side; auto = about half, less where the model is unsuited.",
    )
    rrf_k: int = key(Int(1, 10_000), 60, "Constant of reciprocal rank fusion: 1 / (rrf_k + rank).")
    per_query_top: int = key(
        Int(1, 10_000), 100, "Candidates taken from each side (never under 5 x top)."
    )


class Rules(Section, about="What names and the kind of a file add; the searches' best hit has 1."):
    path: float = key(_RULE, 0.5, "Share of the question that stands in a source file's path.")
    file_name: float = key(_RULE, 0.6, "The same of its name; less where the name says more.")
    definition: float = key(_RULE, 0.3, "A chunk of source defines something named so.")
    symbol: float = key(_RULE, 0.5, "It defines a name that the question writes out.")
    secondary: float = key(
        _UNIT,
        0.4,
        "Share taken from tests, examples, vendored, generated, old source if not asked for.",
    )
    length: float = key(
        _UNIT, 0.03, "Share taken from prose for each e-fold of chunks in its file."
    )
    balance: float = key(
        _UNIT, 0.17, "Share taken from source, which several passages of a file speak for."
    )


class Scoring(Section, about="How the stages' scores combine."):
    formula: str = key(
        Choice("capped", "seed"),
        "capped",
        "capped = fused score plus capped heat; seed = the three-term sum below.",
    )
    alpha_rerank: float = key(
        _UNIT, 0.6, "Weight of the reranker beside the first stage, and in the three-term sum."
    )
    beta_heat: float = key(_UNIT, 0.25, "Weight of heat in the three-term sum.")
    gamma_vector: float = key(_UNIT, 0.15, "Weight of vector similarity in the three-term sum.")
    fold_weight: float | Literal["auto"] = key(
        Auto(_UNIT),
        "auto",
        "What a file's second and third chunk add to its best (1 = plain sum); auto = by kind.",
    )
    rules: Rules = Rules()


class Embeddings(Section, about="The model that turns text into vectors."):
    provider: str = key(
        Choice(
            "builtin",
            "onnx",
            "openai",
            "ollama",
            "llama-server",
            "sentence-transformers",
            "none",
        ),
        "builtin",
        "builtin needs no server; openai = any OpenAI-compatible server; none = words only.",
    )
    base_url: str = key(Url(), "", "Server address; empty = the provider's own default.")
    model: str = key(
        Text(), "", "Name on the server, or for onnx and sentence-transformers a directory."
    )
    doc_prefix: str = key(Text(), "", "Put before every indexed text.")
    query_prefix: str = key(Text(), "", "Put before every query.")
    batch_size: int | Literal["auto"] = key(
        Auto(Int(1, 2048)), "auto", "Texts per request; auto = as many as make it faster."
    )
    max_in_flight: int | Literal["auto"] = key(
        Auto(Int(1, 64)), "auto", "Requests at a time; auto = as many as make it faster."
    )
    timeout_s: float = key(Real(0, 3600, above=True), 60.0, "Seconds to wait for an answer.")
    connect_timeout_s: float = key(
        Real(0, 600, above=True), 5.0, "Seconds to wait for a connection."
    )
    api_key_env: str = key(
        EnvName(), "", "Variable that holds the key; empty = OPENAI_API_KEY if it is set."
    )
    autostart: bool = key(Flag(), True, "Start a local server that is not running.")
    gguf: str = key(Text(), "", "Model file for llama-server.")
    server_bin: str = key(Text(), "", "llama-server program; empty = found on PATH.")


class Expansion(Section, about="Rewording of queries by a chat model (`ragx query --expand`)."):
    enabled: bool = key(Flag(), False, "Whether the stage may be used.")
    provider: str = key(
        Choice("openai", "ollama", "llama-server", "none"),
        "openai",
        "openai = any OpenAI-compatible server.",
    )
    base_url: str = key(Url(), "", "Server address; empty = the provider's own default.")
    model: str = key(Text(), "", "Chat model name.")
    variants: int = key(Int(1, 10), 3, "Rewordings asked for.")
    hyde: bool = key(Flag(), True, "Also ask for a short passage that would answer the query.")
    timeout_s: float = key(Real(0, 3600, above=True), 120.0, "Seconds to wait for an answer.")
    api_key_env: str = key(
        EnvName(), "", "Variable that holds the key; empty = OPENAI_API_KEY if it is set."
    )
    autostart: bool = key(Flag(), True, "Start a local server that is not running.")
    gguf: str = key(Text(), "", "Model file for llama-server.")
    server_bin: str = key(Text(), "", "llama-server program; empty = found on PATH.")


class Rerank(Section, about="Second look at the best hits by a cross-encoder (`--rerank`)."):
    enabled: bool = key(Flag(), False, "Whether the stage may be used.")
    provider: str = key(
        Choice("sentence-transformers", "onnx", "openai", "llama-server", "none"),
        "sentence-transformers",
        "sentence-transformers and onnx run in this process; openai = any server with /rerank.",
    )
    model: str = key(Text(), "BAAI/bge-reranker-v2-m3", "Hub id, local directory or server model.")
    base_url: str = key(Url(), "", "Server address, for a provider that is a server.")
    timeout_s: float = key(Real(0, 3600, above=True), 60.0, "Seconds to wait for an answer.")
    api_key_env: str = key(
        EnvName(), "", "Variable that holds the key; empty = OPENAI_API_KEY if it is set."
    )
    autostart: bool = key(Flag(), True, "Start a local server that is not running.")
    gguf: str = key(Text(), "", "Model file for llama-server.")
    server_bin: str = key(Text(), "", "llama-server program; empty = found on PATH.")


class Query(Section, about="What an answer holds unless a flag says otherwise."):
    top: int = key(Int(1, 1000), 20, "Files returned.")
    max_chunk_chars: int = key(Int(1, 1_000_000), 1200, "Characters of a chunk's text shown.")
    context_lines: int = key(Int(0, 1000), 5, "Non-empty lines shown before and after a chunk.")


class Temporal(Section, about="Weight of a document's date (`--temporal`)."):
    half_life_days: float = key(
        Real(0, 100_000, above=True), 180.0, "Age at which recency counts half."
    )


class Config(Section):
    """All sections; `Config()` is `default config`."""

    corpus: Corpus = Corpus()
    documents: Documents = Documents()
    chunking: Chunking = Chunking()
    graph: Graph = Graph()
    traversal: Traversal = Traversal()
    communities: Communities = Communities()
    fusion: Fusion = Fusion()
    scoring: Scoring = Scoring()
    embeddings: Embeddings = Embeddings()
    expansion: Expansion = Expansion()
    rerank: Rerank = Rerank()
    query: Query = Query()
    temporal: Temporal = Temporal()
