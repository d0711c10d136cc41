"""Tables of the index, their version, and how an older index becomes a current one.

files       one row per path that a run has looked at, indexed or not
chunks      spans of files with their text; chunk_id follows from path, text and occurrence
windows     which embedding stands for which stretch of a chunk, in order
parts       the same of the stretches that `similar` edges compare, where those are not the windows
names       what other chunks may call a chunk: titles, file names, symbols it defines
mentions    names of few bearers and the chunks whose text holds them
links       what a chunk's text refers to on purpose, as written; resolved when edges are derived
neighbours  of each embedding that `similar` edges compare, the nearest others: directed lists
extractions what was read out of documents whose text is not in their bytes, by content
embeddings  vectors addressed by the hash of exactly what was embedded; outlive their chunks
retired     when an embedding lost its last chunk, so that old ones can go
postings    FTS5 over analysed terms; contentless: the text is in `chunks` already
meta        generation and manifest
"""

from __future__ import annotations

import sqlite3

from ragx.errors import IndexDamaged, ManifestMismatch

__all__ = ["APPLICATION_ID", "SCHEMA_VERSION", "create", "require_current"]

APPLICATION_ID = 0x72616778  # "ragx"
# Readable = equal to this. A change of meaning or of tables raises it and adds a migration.
SCHEMA_VERSION = 4

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE files (
    file_id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    content_hash TEXT NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    scanned_ns INTEGER NOT NULL,
    status TEXT NOT NULL,
    code TEXT NOT NULL,
    note TEXT NOT NULL,
    encoding TEXT NOT NULL,
    language TEXT NOT NULL,
    title TEXT NOT NULL,
    n_chunks INTEGER NOT NULL,
    date TEXT NOT NULL,
    date_source TEXT NOT NULL,
    tags TEXT NOT NULL,
    extractor TEXT NOT NULL,
    skipped_parts TEXT NOT NULL
);
CREATE TABLE chunks (
    chunk_id INTEGER PRIMARY KEY,
    file_id INTEGER NOT NULL REFERENCES files (file_id),
    ordinal INTEGER NOT NULL,
    byte_start INTEGER NOT NULL,
    byte_end INTEGER NOT NULL,
    line_start INTEGER NOT NULL,
    line_end INTEGER NOT NULL,
    heading TEXT NOT NULL,
    symbols TEXT NOT NULL,
    text TEXT NOT NULL,
    locator TEXT NOT NULL
);
CREATE UNIQUE INDEX chunks_by_file ON chunks (file_id, ordinal);
CREATE TABLE windows (
    chunk_id INTEGER NOT NULL,
    window INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (chunk_id, window)
) WITHOUT ROWID;
CREATE INDEX windows_by_key ON windows (key);
CREATE TABLE parts (
    chunk_id INTEGER NOT NULL,
    part INTEGER NOT NULL,
    key BLOB NOT NULL,
    PRIMARY KEY (chunk_id, part)
) WITHOUT ROWID;
CREATE INDEX parts_by_key ON parts (key);
CREATE TABLE names (
    name INTEGER NOT NULL,
    chunk_id INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    key TEXT NOT NULL,
    PRIMARY KEY (name, chunk_id)
) WITHOUT ROWID;
CREATE INDEX names_by_chunk ON names (chunk_id);
CREATE TABLE mentions (
    name INTEGER NOT NULL,
    chunk_id INTEGER NOT NULL,
    char_start INTEGER NOT NULL,
    char_end INTEGER NOT NULL,
    PRIMARY KEY (name, chunk_id)
) WITHOUT ROWID;
CREATE INDEX mentions_by_chunk ON mentions (chunk_id);
CREATE TABLE links (
    chunk_id INTEGER NOT NULL,
    place INTEGER NOT NULL,
    kind TEXT NOT NULL,
    form TEXT NOT NULL,
    target TEXT NOT NULL,
    fragment TEXT NOT NULL,
    char_start INTEGER NOT NULL,
    char_end INTEGER NOT NULL,
    PRIMARY KEY (chunk_id, place)
) WITHOUT ROWID;
CREATE TABLE neighbours (
    key BLOB PRIMARY KEY,
    owner INTEGER NOT NULL,
    nearest BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE extractions (
    key TEXT PRIMARY KEY,
    data BLOB NOT NULL,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE embeddings (
    key BLOB NOT NULL PRIMARY KEY,
    vector BLOB NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE retired (key BLOB PRIMARY KEY, at_s INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIRTUAL TABLE postings USING fts5 (
    body, heading, path, symbols,
    content = '',
    tokenize = "porter unicode61 remove_diacritics 0 categories 'L* N* M* S* P* Co'"
);
INSERT INTO meta VALUES ('generation', '0');
"""


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of a new, empty index in one transaction."""
    connection.executescript(
        f"BEGIN IMMEDIATE;{_TABLES}"
        f"PRAGMA application_id = {APPLICATION_ID};"
        f"PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
    )


def require_current(connection: sqlite3.Connection) -> None:
    """Check that the database is a ragx index of a version that this code reads.

    Raises:
        IndexDamaged: it is some other database, or the tables are not there.
        ManifestMismatch: it is an index of another version.
    """
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise IndexDamaged(
            "the index file is not a ragx index", hint="ragx index --full rebuilds it"
        )
    if version != SCHEMA_VERSION:
        raise ManifestMismatch(
            f"the index has format {version}, this ragx reads {SCHEMA_VERSION}",
            hint="ragx index --full rebuilds it",
            details={"key": "schema_version", "old": version, "new": SCHEMA_VERSION},
        )
