"""Rows of OpenDocument tables: repeats spelled out as far as they hold something."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from xml.etree.ElementTree import Element

from ragx.documents.formats.office.sheet import Cell, cell
from ragx.documents.formats.office.word import number
from ragx.documents.formats.office.xml import Event, name

__all__ = ["sheet_rows"]

_ROW = name("table:table-row")
_TABLE = name("table:table")
_CELL = name("table:table-cell")
_COVERED = name("table:covered-table-cell")
_COLUMNS = name("table:number-columns-repeated")
_ROWS = name("table:number-rows-repeated")
_TYPE = name("office:value-type")
_TIME = re.compile(r"(-?)PT(\d{1,9})H(\d{1,2})M(\d{1,2})")
_MAX_COLUMNS = 16_384
_MAX_ROWS = 1_048_576


def sheet_rows(
    events: Iterator[Event], text_of: Callable[[Element], str], max_chars: int
) -> Iterator[tuple[int, dict[int, Cell]]]:
    """Numbers and cells of the rows up to the end of the table that is open.

    Args:
        events: of the content, with rows as units.
        text_of: gives what a cell shows.
        max_chars: where a row is cut off: one cell can be repeated over all columns.
    """
    count = 0
    for event, element in events:
        if event == "end" and element.tag == _TABLE:
            return
        if event != "unit" or element.tag != _ROW:
            continue
        repeats = max(1, number(element.get(_ROWS, ""), 1))
        cells = _cells(element, text_of, max_chars)
        if cells:
            for row in range(count + 1, min(count + repeats, _MAX_ROWS) + 1):
                yield row, cells
        count += repeats


def _cells(row: Element, text_of: Callable[[Element], str], max_chars: int) -> dict[int, Cell]:
    found: dict[int, Cell] = {}
    column = 0
    n_chars = 0
    for element in row:
        if element.tag not in (_CELL, _COVERED):
            continue
        repeats = max(1, number(element.get(_COLUMNS, ""), 1))
        value = _value(element, text_of) if element.tag == _CELL else None
        if value is not None:
            for place in range(column + 1, min(column + repeats, _MAX_COLUMNS) + 1):
                found[place] = value
                n_chars += len(value.text)
                if n_chars > max_chars:
                    return found
        column += repeats
    return found


def _value(element: Element, text_of: Callable[[Element], str]) -> Cell | None:
    kind = element.get(_TYPE, "")
    if kind == "date" and (date := element.get(name("office:date-value"))):
        return cell(date.removesuffix("T00:00:00").replace("T", " "), is_text=False)
    if kind == "time" and (match := _TIME.match(element.get(name("office:time-value"), ""))):
        sign, hours, minutes, seconds = match.groups()
        return Cell(f"{sign}{int(hours)}:{int(minutes):02d}:{int(seconds):02d}", False)
    if kind == "boolean":
        is_true = element.get(name("office:boolean-value")) == "true"
        return Cell("TRUE" if is_true else "FALSE", False)
    text = text_of(element) or element.get(name("office:value"), "")
    text = text or element.get(name("office:string-value"), "")
    if not text and (formula := element.get(name("table:formula"))):
        return cell(f"={formula.partition('=')[2]}", is_text=True)
    return cell(text, is_text=kind in ("string", ""))
