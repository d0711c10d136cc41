"""Settings: `ragx.toml` and `~/.ragxrc` to frozen, typed records.

| module    | holds                                                          |
|-----------|----------------------------------------------------------------|
| sections  | every key with type, default, range and meaning: the one table |
| rules     | what kinds of values there are                                 |
| load      | files -> Config, with precedence and origins                   |
| endpoints | server addresses and keys                                      |
| render    | the commented `ragx.toml`                                      |
| edit      | one setting changed in place                                   |
| root      | which corpus, and the move from the old layout                 |
"""

from __future__ import annotations

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
from ragx.config.root import INDEX_DIRECTORY, find_root, migrate_legacy
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

__all__ = [
    "BASE_URLS",
    "CONFIG_NAME",
    "INDEX_DIRECTORY",
    "MACHINE_SECTIONS",
    "RC_LABEL",
    "RC_NAME",
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
    "default_toml",
    "find_key",
    "find_root",
    "get_value",
    "keys",
    "list_values",
    "literal",
    "load_config",
    "migrate_legacy",
    "parse_value",
    "require_machine_key",
    "resolve_api_key",
    "set_value",
    "values_of",
    "write_file",
]
