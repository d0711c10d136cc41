"""The SQLite engine behind `store.base`: one database in WAL mode holds the whole truth.

connect.py  where it lies, how it is opened, checked and replaced
schema.py   its tables and their version
rows.py     its rows and what they stand for
reader.py   a snapshot of the last commit
writer.py   stages a run's changes and commits them at once
seal.py     a checksum between runs         vectors.py  what is derived from it
"""

from __future__ import annotations

from ragx.store.connect import DATABASE_NAME, INDEX_DIRECTORY, index_directory
from ragx.store.reader import SqliteReader
from ragx.store.writer import SqliteWriter

__all__ = ["DATABASE_NAME", "INDEX_DIRECTORY", "SqliteReader", "SqliteWriter", "index_directory"]
