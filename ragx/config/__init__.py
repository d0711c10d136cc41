"""Settings: `ragx.toml` and `~/.ragxrc` to frozen, typed records.

| module    | holds                                                          |
|-----------|----------------------------------------------------------------|
| sections  | every key with type, default, range and meaning: the one table |
| rules     | what kinds of values there are                                 |
| load      | files -> Config, with precedence and origins                   |
| endpoints | server addresses and keys                                      |
| render    | the commented `ragx.toml`                                      |
| edit      | one setting changed in place                                   |
| create    | the file of a new corpus, many settings at once                |
| root      | which corpus, and the move from the old layout                 |
| trust     | which of a corpus's settings wait for its reader's word        |
"""

from __future__ import annotations

from ragx.config.create import create_config, edited
from ragx.config.edit import (
    Setting,
    get_value,
    list_values,
    parse_value,
    require_machine_key,
    set_value,
    write_file,
)
from ragx.config.endpoints import BASE_URLS, resolve_api_key
from ragx.config.load import CONFIG_NAME, RC_LABEL, RC_NAME, LoadedConfig, load_config
from ragx.config.render import default_toml, literal
from ragx.config.root import INDEX_DIRECTORY, find_legacy, find_root, migrate_legacy
from ragx.config.rules import Value
from ragx.config.sections import (
    Chunking,
    Communities,
    Config,
    Corpus,
    Embeddings,
    Expansion,
    Fusion,
    Graph,
    GraphWeights,
    Query,
    Rerank,
    Scoring,
    Temporal,
    Traversal,
)
from ragx.config.table import MACHINE_SECTIONS, build, find_key, keys, values_of
from ragx.config.trust import (
    TRUST_LABEL,
    digest,
    forget,
    is_trusted,
    remember,
    require_trust,
    sensitive,
    trust_written,
    untrusted,
)

__all__ = [
    "BASE_URLS",
    "CONFIG_NAME",
    "INDEX_DIRECTORY",
    "MACHINE_SECTIONS",
    "RC_LABEL",
    "RC_NAME",
    "TRUST_LABEL",
    "Chunking",
    "Communities",
    "Config",
    "Corpus",
    "Embeddings",
    "Expansion",
    "Fusion",
    "Graph",
    "GraphWeights",
    "LoadedConfig",
    "Query",
    "Rerank",
    "Scoring",
    "Setting",
    "Temporal",
    "Traversal",
    "Value",
    "build",
    "create_config",
    "default_toml",
    "digest",
    "edited",
    "find_key",
    "find_legacy",
    "find_root",
    "forget",
    "get_value",
    "is_trusted",
    "keys",
    "list_values",
    "literal",
    "load_config",
    "migrate_legacy",
    "parse_value",
    "remember",
    "require_machine_key",
    "require_trust",
    "resolve_api_key",
    "sensitive",
    "set_value",
    "trust_written",
    "untrusted",
    "values_of",
    "write_file",
]
