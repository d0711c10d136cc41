"""Who mentions whom, kept in step with the rows: part of every commit.

A name counts as long as few chunks bear it. When a commit makes a name count, or stop counting,
the chunks whose text holds it are read again; everything else about mentions follows from a
chunk's own text. What is stored is that a chunk holds a name, and where. Whom that joins, and how
strongly, is decided when edges are derived, so that one edit does not rewrite the graph.
"""

from __future__ import annotations

import re
import sqlite3
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import xxhash

from ragx.algo.chunking.languages import kind_of
from ragx.algo.lexical import UNSPACED_CHARACTER, analyse, fold
from ragx.algo.mentions import (
    NameTree,
    find_symbols,
    first_words,
    is_telling,
    is_telling_symbol,
    without_destinations,
)
from ragx.store.base import StagedChunk

__all__ = ["SYMBOL", "TITLE", "MentionUpdate", "name_number", "names_of"]

TITLE, SYMBOL = 0, 1
MAX_BEARERS = 4  # a name that more chunks bear says little about any of them
_FULL_SCAN = 400  # changed names from which reading every chunk is quicker than asking for each
_BATCH = 500
_JAMO = re.compile("[\u1100-\u11ff]")

Name = tuple[int, int, str]  # number, kind, key


def name_number(kind: int, key: str) -> int:
    """What a name is joined by: 63 bits of a hash of its kind and key."""
    return xxhash.xxh3_64_intdigest(f"{kind}\0{key}".encode("utf-8", "surrogatepass")) >> 1


def names_of(staged: StagedChunk) -> list[Name]:
    """Names of a chunk worth looking for: of the file it begins, and of what it defines."""
    titles = [(TITLE, key) for key in staged.names if is_telling(key)]
    symbols = [(SYMBOL, name) for name in staged.chunk.symbols if is_telling_symbol(name)]
    return [(name_number(kind, key), kind, key) for kind, key in dict.fromkeys(titles + symbols)]


@dataclass(slots=True)
class MentionUpdate:
    """The mentions of one commit: `before` it drops and adds rows, `after` it has done so.

    Args:
        db: the writer's connection, inside the transaction.
        all_anew: read every chunk, whatever is stored.
    """

    db: sqlite3.Connection
    all_anew: bool
    _counted_before: frozenset[int] = frozenset()

    def before(self) -> None:
        """Note which names count that this commit may touch. Needs temp.outgoing and what is
        staged."""
        self.db.execute("DROP TABLE IF EXISTS temp.touched_names")
        self.db.execute(
            "CREATE TEMP TABLE touched_names AS SELECT name FROM names"
            " JOIN temp.outgoing USING (chunk_id) UNION SELECT name FROM temp.staged_names"
        )
        self._counted_before = self._counting()

    def after(self) -> None:
        """Bring the mentions in step with the names and chunks that are there now."""
        db = self.db
        now = self._counting()
        if self.all_anew:
            db.execute("DELETE FROM mentions")
            self._scan("SELECT chunk_id FROM chunks")
            return
        appeared, vanished = now - self._counted_before, self._counted_before - now
        db.execute("DROP TABLE IF EXISTS temp.rescan")
        db.execute("CREATE TEMP TABLE rescan (chunk_id INTEGER PRIMARY KEY)")
        db.execute("INSERT INTO temp.rescan SELECT chunk_id FROM temp.staged_chunks")
        expressions = [_expression(kind, key) for kind, key in self._keys(appeared)]
        if len(appeared) > _FULL_SCAN or not all(expressions):
            db.execute("INSERT OR IGNORE INTO temp.rescan SELECT chunk_id FROM chunks")
        else:
            db.executemany(
                "INSERT OR IGNORE INTO temp.rescan SELECT chunk_id FROM mentions WHERE name = ?",
                [(name,) for name in sorted(vanished)],
            )
            db.executemany(
                "INSERT OR IGNORE INTO temp.rescan SELECT rowid FROM postings"
                " WHERE postings MATCH ?",
                [(expression,) for expression in expressions],
            )
        db.execute("DELETE FROM mentions WHERE chunk_id IN (SELECT chunk_id FROM temp.rescan)")
        self._scan("SELECT chunk_id FROM temp.rescan")

    def _counting(self) -> frozenset[int]:
        """Those of the touched names that few enough chunks bear."""
        rows = self.db.execute(
            "SELECT name FROM temp.touched_names CROSS JOIN names USING (name)"
            " GROUP BY name HAVING count(*) <= ?",
            (MAX_BEARERS,),
        )
        return frozenset(name for (name,) in rows)

    def _keys(self, numbers: Collection[int]) -> Iterator[tuple[int, str]]:
        for number in sorted(numbers):
            yield self.db.execute(
                "SELECT kind, key FROM names WHERE name = ? LIMIT 1", (number,)
            ).fetchone()

    def _scan(self, which: str) -> None:
        """Look for every name that counts in the chunks that a query names."""
        titles, symbols = self._known()
        if not titles and not symbols:
            return
        cursor = self.db.execute(
            "SELECT c.chunk_id, f.language, c.text FROM chunks c JOIN files f USING (file_id)"
            f" WHERE c.chunk_id IN ({which}) ORDER BY c.chunk_id"
        )
        insert = "INSERT INTO mentions VALUES (?, ?, ?, ?)"
        rows = cursor.fetchmany(_BATCH)
        # Few texts: most names cannot begin in any of them, and a tree of all takes its time.
        first = first_words(text for _, _, text in rows) if len(rows) < _BATCH else None
        keys = [key for key in titles if first is None or key.partition(" ")[0] in first]
        tree, long_tree = NameTree(keys), NameTree(key for key in keys if " " in key)
        while rows:
            found = [
                row
                for chunk_id, language, text in rows
                for row in _mentions(chunk_id, language, text, tree, long_tree, titles, symbols)
            ]
            self.db.executemany(insert, found)
            rows = cursor.fetchmany(_BATCH)

    def _known(self) -> tuple[dict[str, int], dict[str, int]]:
        """Titles and symbols that count, with their numbers."""
        known: tuple[dict[str, int], dict[str, int]] = ({}, {})
        rows = self.db.execute(
            "SELECT name, kind, key FROM names GROUP BY name HAVING count(*) <= ?", (MAX_BEARERS,)
        )
        for number, kind, key in rows:
            known[kind][key] = number
        return known


def _mentions(
    chunk_id: int,
    language: str,
    text: str,
    tree: NameTree,
    long_tree: NameTree,
    titles: dict[str, int],
    symbols: dict[str, int],
) -> Iterable[tuple[int, int, int, int]]:
    prose = kind_of(language) == "docs"
    # In source code a title of one word is a word of the language more often than a title.
    running = without_destinations(text) if prose else text
    for mention in (tree if prose else long_tree).find(running):
        yield titles[mention.key], chunk_id, mention.start, mention.end
    if symbols:
        for mention in find_symbols(text, symbols, prose=prose):
            yield symbols[mention.key], chunk_id, mention.start, mention.end


def _expression(kind: int, key: str) -> str:
    """A full-text expression that every chunk in which the name can be found matches; "" if none.

    The words of a title's key are terms already: analysed again, `1⁄2` would fall apart. Of
    scripts without spaces the index holds pairs, so that one character is how a term begins.
    """
    terms: list[str] = []
    composed = unicodedata.normalize("NFC", key)
    if kind == SYMBOL and UNSPACED_CHARACTER.search(composed):
        # Beside others, what folds to something else may have become one character with them.
        unspaced = UNSPACED_CHARACTER.findall(composed)
        same = [c for c in unspaced if fold(c) == c and _is_indexed(c)]
        terms = [f'"{character}"*' for character in same]
    else:
        for word in key.split() if kind == TITLE else fold(key).split():
            if not _is_indexed(word):
                continue
            of_pairs = all(map(UNSPACED_CHARACTER.match, word))
            terms.append(f'"{word[0]}"*' if of_pairs else f'"{word}"')
    return " AND ".join(dict.fromkeys(terms))


def _is_indexed(word: str) -> bool:
    """Whether the index is sure to hold a folded word as a term.

    Not of characters younger than SQLite's tables, which know Unicode 3.2 at the least, nor of
    marks that stand for no word; single jamo are one term with those beside them.
    """
    if word.isascii():
        return True
    known = any(unicodedata.ucd_3_2_0.category(character)[0] != "C" for character in word)
    return known and bool(analyse(word)) and not _JAMO.search(word)
