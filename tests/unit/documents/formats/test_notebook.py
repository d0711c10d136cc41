"""Notebooks: cells in order, outputs cut short, what is no notebook."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragx.documents.formats.base import Block, Extracted, ExtractLimits, SkippedPart
from ragx.documents.formats.notebook.document import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
PYTHON = {"kernelspec": {"name": "python3", "language": "python"}}


def markdown(source: str | list[str], **more: Any) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": source, **more}


def code(source: str | list[str], *outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": source, "outputs": list(outputs)}


def stream(text: str | list[str], name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    kinds = {"plain": "text/plain", "html": "text/html", "png": "image/png", "md": "text/markdown"}
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {kinds.get(key, key): value for key, value in data.items()},
    }


def notebook(*cells: dict[str, Any], **metadata: Any) -> bytes:
    return json.dumps(
        {"nbformat": 4, "nbformat_minor": 5, "metadata": {**PYTHON, **metadata}, "cells": cells}
    ).encode()


def read(*cells: dict[str, Any], **metadata: Any) -> Extracted:
    return extract(notebook(*cells, **metadata), LIMITS)


def shape(found: Extracted) -> list[tuple[str, str, int]]:
    return [(block.kind, block.text, block.place.number) for block in found.blocks]


def fault(raw: bytes) -> tuple[str, str]:
    with pytest.raises(ExtractionError) as caught:
        extract(raw, LIMITS)
    return caught.value.code, str(caught.value)


def test_cells_count_from_one_and_blocks_come_in_order() -> None:
    found = read(
        markdown("# Waves\n\nHow they move.\n\n- one\n* two\n"),
        code(["import math\n", "\n", "if True:\n", "    math.pi"], stream("3.14\n")),
        {"cell_type": "raw", "metadata": {}, "source": "kept as it is"},
    )
    assert shape(found) == [
        ("heading", "Waves", 1),
        ("text", "How they move.", 1),
        ("list", "- one\n- two", 1),
        ("code", "import math\n\nif True:\n    math.pi", 2),
        ("code", "3.14", 2),
        ("text", "kept as it is", 3),
    ]
    assert found.title == "Waves"
    assert [block.language for block in found.blocks] == ["", "", "", "python", "", ""]
    assert {block.place.kind for block in found.blocks} == {"cell"}


def test_empty_cells_count() -> None:
    assert shape(read(code(""), markdown(""), markdown("third"))) == [("text", "third", 3)]


def test_headings_have_levels_and_setext_counts() -> None:
    found = read(markdown("Title\n=====\n\n### Deep ###\n\ntext"))
    levels = [(block.text, block.level) for block in found.blocks if block.kind == "heading"]
    assert levels == [("Title", 1), ("Deep", 3)]


def test_a_table_is_one_row_a_line() -> None:
    found = read(markdown("| a | b |\n|---|:-:|\n| 1 | x \\| y |\n| 2 | z |"))
    assert found.blocks == (
        Block("table", "a | b\n1 | x \\| y\n2 | z", found.blocks[0].place, header_rows=1),
    )


def test_fences_keep_their_lines_and_name_their_language() -> None:
    found = read(markdown("See:\n\n```js\nlet a = 1;\n\n  b();\n```\n\nand\n\n    indented\n"))
    assert [(block.kind, block.text, block.language) for block in found.blocks] == [
        ("text", "See:", ""),
        ("code", "let a = 1;\n\n  b();", "javascript"),
        ("text", "and", ""),
        ("code", "indented", ""),
    ]


def test_links_to_files_have_their_targets() -> None:
    found = read(
        markdown("See [the guide](docs/guide.md#start) and [this][ref].\n\n[ref]: b.ipynb")
    )
    first = found.blocks[0]
    assert [(first.text[link.start : link.end], link.target) for link in first.links] == [
        ("[the guide](docs/guide.md#start)", "docs/guide.md#start"),
        ("[this][ref]", "b.ipynb"),
    ]


def test_html_in_markdown_becomes_text() -> None:
    found = read(markdown("<table><tr><th>a</th><th>b</th></tr>\n<tr><td>1</td></tr></table>"))
    assert shape(found) == [("text", "a | b\n1", 1)]


def test_images_inside_texts_are_left_out() -> None:
    found = read(
        markdown("before ![x](data:image/png;base64,iVBORw0KGgoAAAA=) after", attachments={"a": {}})
    )
    assert "iVBOR" not in found.blocks[0].text
    assert found.skipped_parts == (SkippedPart("attachments", 1), SkippedPart("images", 1))


def test_the_plainest_form_of_an_output_is_taken() -> None:
    found = read(
        code("a", shown(plain="x  y\n1  2", html="<table><tr><td>x</td></tr></table>")),
        code("b", shown(plain="<IPython.core.display.HTML object>", html="<b>bold</b> text")),
        code("c", shown(plain=["<Figure size 640x480 with 1 Axes>"], png="iVBORw0KGgo=")),
        code("d", shown(plain="[<matplotlib.lines.Line2D at 0x7f00>]")),
        code("e", shown(md="# Result\n\n*all* good")),
        code(
            "f", shown(**{"application/vnd.jupyter.widget-view+json": {}, "plain": "IntSlider()"})
        ),
        code("g", shown(**{"application/json": {"a": 1}})),
    )
    assert [text for _, text, _ in shape(found)] == [
        "a", "x  y\n1  2", "b", "bold text", "c", "d", "e", "Result", "*all* good", "f", "g"
    ]  # fmt: skip
    assert "heading" not in {block.kind for block in found.blocks}
    assert [(part.what, part.count) for part in found.skipped_parts] == [
        ("images", 1),
        ("outputs without text", 2),
        ("widgets", 1),
    ]


def test_long_outputs_are_cut_and_the_lines_counted() -> None:
    found = read(code("a", stream("".join(f"line {n}\n" for n in range(100)))))
    assert found.blocks[1].text.split("\n") == [f"line {n}" for n in range(20)]
    assert found.skipped_parts == (SkippedPart("lines of output", 80),)


def test_a_huge_line_is_cut() -> None:
    found = read(code("a", stream("x" * 3_000_000)))
    assert len(found.blocks[1].text) == 2_000


def test_a_cell_puts_out_four_thousand_characters_at_most() -> None:
    outputs = [shown(plain="y" * 1_500) for _ in range(10)]
    found = read(code("a", *outputs))
    assert sum(len(block.text) for block in found.blocks[1:]) == 4_000


def test_streams_that_follow_each_other_are_one() -> None:
    found = read(code("a", stream("one\n"), stream("two\n"), stream("oops\n", "stderr")))
    assert [block.text for block in found.blocks] == ["a", "one\ntwo", "oops"]


def test_progress_bars_show_their_last_state() -> None:
    found = read(code("a", stream("  0%|   |\r 50%|#  |\r100%|###|\ndone\r\n")))
    assert found.blocks[1].text == "100%|###|\ndone"


def test_an_error_is_its_last_frame_and_message() -> None:
    error = {
        "output_type": "error",
        "ename": "ValueError",
        "evalue": "no such wave",
        "traceback": [
            "\x1b[0;31m----------\x1b[0m",
            "\x1b[0;31mValueError\x1b[0m      Traceback (most recent call last)",
            "<ipython-input-1> in outer()\n----> 1 inner()",
            "<ipython-input-1> in inner()\n\x1b[0;32m----> 7 raise\x1b[0m",
            "\x1b[0;31mValueError\x1b[0m: no such wave",
        ],
    }
    found = read(code("a", error))
    assert found.blocks[1].text == (
        "<ipython-input-1> in inner()\n----> 7 raise\nValueError: no such wave"
    )


def test_magics_name_another_language() -> None:
    found = read(code("%%bash\nls"), code("%%timeit\nf()"), code("%%writefile a.txt\nhello"))
    assert [block.language for block in found.blocks] == ["bash", "python", ""]


@pytest.mark.parametrize(
    ("metadata", "language"),
    [
        ({"language_info": {"name": "julia"}}, "julia"),
        ({"language_info": {"name": "R"}, "kernelspec": {"name": "ir"}}, "r"),
        ({"kernelspec": {"name": "xcpp17", "language": "C++17"}}, ""),
        ({"language_info": 7, "kernelspec": ["?"]}, ""),
    ],
)
def test_the_kernel_names_the_language(metadata: dict[str, Any], language: str) -> None:
    assert read(code("x"), **metadata).blocks[0].language == language


def test_format_3_has_worksheets() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": ["Old\n", "title"]},
        {"cell_type": "markdown", "source": "text"},
        {
            "cell_type": "code",
            "input": ["1 + 1"],
            "language": "python",
            "outputs": [
                {"output_type": "pyout", "text": ["2"], "html": "<b>2</b>"},
                {"output_type": "display_data", "png": "iVBO"},
                {"output_type": "pyerr", "ename": "E", "evalue": "v", "traceback": []},
                {"output_type": "stream", "stream": "stdout", "text": "said"},
            ],
        },
    ]
    raw = json.dumps({"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}).encode()
    found = extract(raw, LIMITS)
    assert shape(found) == [
        ("heading", "Old title", 1),
        ("text", "text", 2),
        ("code", "1 + 1", 3),
        ("code", "2", 3),
        ("code", "E: v", 3),
        ("code", "said", 3),
    ]
    assert found.blocks[0].level == 2
    assert found.blocks[2].language == "python"
    assert found.skipped_parts == (SkippedPart("images", 1),)


def test_tags_and_title_of_the_metadata() -> None:
    found = read(markdown("text"), title="A title", keywords="sea, waves", tags=["waves", "x", 3])
    assert (found.title, found.tags, found.date) == ("A title", ("sea", "waves", "x"), "")


def test_nothing_is_nothing() -> None:
    assert extract(b"", LIMITS) == Extracted(())
    assert extract(b" \n", LIMITS) == Extracted(())
    assert read() == Extracted(())


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"%PDF-1.4 not JSON", "no JSON"),
        (b"\xff\xfe\x00\xd8", "no JSON"),
        (b"\x80abc", "no JSON"),
        (b"[1, 2]", "no notebook"),
        (b'{"a": 1}', "no notebook"),
        (b'"cells"', "no notebook"),
        (b'{"cells": ' + b"[" * 200_000, "cannot be read"),
        (b'{"cells": [], "n": ' + b"9" * 10_000 + b"}", "cannot be read"),
    ],
)
def test_what_is_no_notebook_is_damaged(raw: bytes, why: str) -> None:
    code, message = fault(raw)
    assert code == "damaged"
    assert why in message
    assert "\n" not in message


def test_a_notebook_cut_anywhere_is_damaged() -> None:
    raw = notebook(markdown("# Title"), code("print('x')", stream("x\n")))
    for length in range(1, len(raw)):
        assert fault(raw[:length])[0] == "damaged"
    assert "cut off" in fault(raw[:-3])[1]


def test_wrong_types_anywhere_do_no_harm() -> None:
    odd: list[Any] = [None, 7, "x", [], {}, [None], {"a": 1}]
    for value in odd:
        for key in ("cell_type", "source", "outputs", "attachments", "level", "metadata"):
            for kind in ("code", "markdown", "heading"):
                read({**code("x", stream("y")), "cell_type": kind, key: value})
        for key in ("output_type", "data", "text", "name", "traceback", "ename"):
            for kind in ("stream", "error", "display_data"):
                read(code("x", {"output_type": kind, "data": {"text/plain": 1}, key: value}))
        raw = json.dumps({"cells": value, "metadata": value, "worksheets": [value]}).encode()
        extract(raw, LIMITS)


def test_half_pairs_nan_and_control_characters() -> None:
    cell = '{"cell_type": "markdown", "source": "a\\ud800b \\ud83d\\ude00 \\u0000\\ufb01n\\u00ad"}'
    raw = f'{{"metadata": {{"x": NaN}}, "cells": [{cell}]}}'.encode()
    assert extract(raw, LIMITS).blocks[0].text == "a\ufffdb \U0001f600 fin"


def test_scripts_from_right_to_left_and_decomposed_letters() -> None:
    found = read(markdown("# שלום\n\nمرحبا بالعالم\n\nCafe\u0301"))
    assert [block.text for block in found.blocks] == ["שלום", "مرحبا بالعالم", "Café"]


def test_limits_hold() -> None:
    raw = notebook(*(markdown(f"word {n}") for n in range(1_000)))
    few = extract(raw, ExtractLimits(max_blocks=10))
    assert len(few.blocks) == 10
    assert few.skipped_parts[-1].what == "rest"
    short = extract(raw, ExtractLimits(max_chars=50))
    assert sum(len(block.text) for block in short.blocks) <= 50


def test_a_hundred_thousand_cells() -> None:
    found = read(*(markdown("x") for _ in range(100_001)))
    assert len(found.blocks) == 100_000
    assert found.skipped_parts == (
        SkippedPart("rest", 0, "all from cell 100001 on: over 100,000 blocks"),
    )
