"""Web pages: what of them is text, in which blocks, and what broken or hostile ones do."""

from __future__ import annotations

import pytest

from ragx.documents.formats.base import Block, Extracted, ExtractLimits, SkippedPart
from ragx.documents.formats.markup.html import (
    decode_markup,
    extract,
    is_document,
    title_without_site,
)
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()


def page(body: str, head: str = "") -> Extracted:
    text = f"<!doctype html><html><head>{head}</head><body>{body}</body></html>"
    return extract(text.encode(), LIMITS)


def texts(body: str) -> list[str]:
    return [block.text for block in page(body).blocks]


def kinds(body: str) -> list[tuple[str, str]]:
    return [(block.kind, block.text) for block in page(body).blocks]


def linked(block: Block) -> list[tuple[str, str]]:
    return [(block.text[link.start : link.end], link.target) for link in block.links]


class TestBlocks:
    def test_headings_have_levels_and_lose_their_permalinks(self) -> None:
        blocks = page(
            '<h1>One<a class="headerlink" href="#one">¶</a></h1><h3>Th<b>re</b>e '
            '<a href="#three">#</a></h3><h6><br>Six<br>lines</h6><h2></h2>'
        ).blocks
        assert [(b.kind, b.level, b.text) for b in blocks] == [
            ("heading", 1, "One"),
            ("heading", 3, "Three"),
            ("heading", 6, "Six lines"),
        ]
        assert {b.place.kind for b in blocks} == {"heading"}
        assert not any(b.links for b in blocks)

    def test_white_space_is_what_a_browser_shows(self) -> None:
        assert texts("<p>  one\n\n two<b> three</b>four <i> five</i>&nbsp;six<br>seven</p>") == [
            "one two threefour five six\nseven"
        ]

    def test_text_without_paragraphs_is_divided_at_blocks(self) -> None:
        assert texts("one<div>two<div>three</div></div>four<hr>five") == [
            "one", "two", "three", "four", "five",
        ]  # fmt: skip

    def test_items_are_marked_and_nested(self) -> None:
        assert kinds(
            "<ul><li>a<ul><li>b<li>c</ul></li><li><p>d</p><p>e</p></li><li></li></ul>"
            "<ol start=3><li>x<li>y<li value=9>z</ol>after"
        ) == [
            ("list", "- a\n  - b\n  - c"),
            ("list", "- d\n  e"),
            ("list", "3. x"),
            ("list", "4. y"),
            ("list", "9. z"),
            ("text", "after"),
        ]

    def test_code_in_an_item_keeps_its_lines(self) -> None:
        assert kinds("<ul><li>run<pre>a\n  b</pre>then</li></ul>") == [
            ("list", "- run"),
            ("code", "a\n  b"),
            ("text", "then"),
        ]

    def test_a_list_around_sections_is_none(self) -> None:
        assert kinds("<ul><li><h3>Method</h3><p>does</p></li></ul>") == [
            ("heading", "Method"),
            ("text", "does"),
        ]

    def test_definitions_follow_their_terms(self) -> None:
        assert texts("<dl><dt><code>f(<em>x</em>)</code><dd><p>Does f.<p>More.</dl>") == [
            "f(x)", "Does f.", "More.",
        ]  # fmt: skip

    def test_a_footnote_stands_beside_its_number(self) -> None:
        assert texts("<dl class=footnote><dt>[1]</dt><dd><p>A note.</p></dd></dl>") == [
            "[1] A note."
        ]

    @pytest.mark.parametrize(
        ("markup", "language"),
        [
            ('<pre><code class="language-py">x</code></pre>', "python"),
            ('<div class="highlight-python3 notranslate"><div><pre>x</pre></div></div>', "python"),
            ('<pre class="programlisting">x</pre>', ""),
            ('<div class="highlight-default"><pre>x</pre></div>', ""),
            ('<pre data-lang="Rust">x</pre>', "rust"),
            ('<pre><code class="language-nonsense">x</code></pre>', ""),
        ],
    )
    def test_code_tells_its_language(self, markup: str, language: str) -> None:
        (block,) = page(markup).blocks
        assert (block.kind, block.text, block.language) == ("code", "x", language)

    def test_code_keeps_indentation_and_loses_line_numbers(self) -> None:
        (block,) = page(
            '<table class="highlighttable"><tr><td class="linenos"><pre>1\n2</pre></td><td'
            ' class="code"><pre><span class="lineno">1 </span>\n  if a:\n    b &lt; c\n\n</pre>'
            "</td></tr></table>"
        ).blocks
        assert block.text == "if a:\n  b < c"

    def test_quotes_figures_and_details_are_text(self) -> None:
        assert texts(
            "<blockquote><p>said</p></blockquote><figure><img src=x alt='A plot of loads'>"
            "<figcaption>Loads</figcaption></figure><details><summary>More</summary>inside</details>"
        ) == ["said", "[image: A plot of loads]", "Loads", "More", "inside"]

    def test_images_without_words_are_counted(self) -> None:
        got = page("<p>a<img src=1 alt=logo><img src=2></p>")
        assert got.skipped_parts == (SkippedPart("images", 2),)

    def test_characters_nobody_sees_are_gone(self) -> None:
        assert texts(
            "<p>of\u00adfice o\ufb03ce e&#769;t\u00e9 a\u200bb \u202eabc\u202c&#1;</p>"
        ) == ["office office \u00e9t\u00e9 ab abc"]

    def test_joiners_of_scripts_stay(self) -> None:
        word = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
        assert texts(
            f"<p dir=rtl>{word} \u05e9\u05dc\u05d5\u05dd</p><p>\u65e5\u672c\u8a9e</p>"
        ) == [
            f"{word} \u05e9\u05dc\u05d5\u05dd",
            "\u65e5\u672c\u8a9e",
        ]


class TestTables:
    def test_rows_are_lines_and_names_are_headers(self) -> None:
        caption, table = page(
            "<table><caption>Ports</caption><thead><tr><th>Name<th>No.</thead>"
            "<tbody><tr><td>a|b<td>1<br>2<tr><td><p>c</p><p>d</p><td></tbody></table>"
        ).blocks
        assert (caption.kind, caption.text) == ("text", "Ports")
        assert (table.kind, table.header_rows) == ("table", 1)
        assert table.text == "Name | No.\na\\|b | 1 2\nc d"

    def test_row_names_are_no_header(self) -> None:
        (table,) = page("<table><tr><th>a<td>1<tr><th>b<td>2</table>").blocks
        assert (table.header_rows, table.text) == (0, "a | 1\nb | 2")

    def test_spans_keep_columns_in_place(self) -> None:
        (table,) = page(
            "<table><tr><td rowspan=2>a<td>1<td>x<tr><td>2<td>y"
            "<tr><td colspan=2>b<td>z<tr><td colspan=99999999999>c</table>"
        ).blocks
        assert table.text == "a | 1 | x\na | 2 | y\nb |  | z\nc"

    def test_links_are_where_their_text_is(self) -> None:
        (table,) = page(
            '<table><tr><td><td>p|q<tr><td>k<td>see <a href="b.html#z">that <i>one</i></a></table>'
        ).blocks
        assert table.text == "| p\\|q\nk | see that one"
        assert linked(table) == [("that one", "b.html#z")]

    @pytest.mark.parametrize(
        "markup",
        [
            "<table><tr><td><p>one<p>two</table>",
            "<table><tr><td>one</td></tr><tr><td>two</td></tr></table>",
            "<table><tr><td>one<table><tr><td>two</table></table>",
            "<table role=presentation><tr><td>one<td>two</table>",
        ],
    )
    def test_layout_is_read_as_text(self, markup: str) -> None:
        assert kinds(markup) == [("text", "one"), ("text", "two")]

    def test_a_long_table_is_cut_with_its_header(self) -> None:
        rows = "".join(f"<tr><td>{n}<td>{'v' * 50}" for n in range(2000))
        blocks = page(f"<table><tr><th>n<th>v{rows}</table>").blocks
        assert len(blocks) > 3
        assert {(b.header_rows, b.text.split("\n")[0]) for b in blocks} == {(1, "n | v")}
        assert sum(b.text.count("\n") for b in blocks) == 2000


class TestLinks:
    def test_targets_are_as_written(self) -> None:
        (block,) = page(
            '<p>See <a href="../a b.html">this  page</a>, <a href="#x">below</a> or '
            '<a href="https://e.org/?a=1&amp;b=2"><code>that</code></a>.'
            '<a href="javascript:go()">go</a><a href="y.html"></a><a name="n">n</a></p>'
        ).blocks
        assert linked(block) == [
            ("this page", "../ab.html"),
            ("below", "#x"),
            ("that", "https://e.org/?a=1&b=2"),
        ]

    def test_a_link_around_blocks_is_one_of_each(self) -> None:
        blocks = page("<a href='t'><h2>Head</h2><p>Text</p></a><p>after</p>").blocks
        assert [linked(block) for block in blocks] == [[("Head", "t")], [("Text", "t")], []]

    def test_composed_text_moves_links_along(self) -> None:
        (block,) = page('<p>e<b>&#769;</b>e<b>&#769;</b> <a href="t">x</a></p>').blocks
        assert (block.text, linked(block)) == ("\u00e9\u00e9 x", [("x", "t")])


class TestMainText:
    def test_navigation_is_left_out_and_counted(self) -> None:
        got = page(
            "<header><a href=/>Site</a></header><nav><a href=a>A</a><a href=b>B</a></nav>"
            "<div class=breadcrumbs><a href=c>C</a> &gt; here</div>"
            "<main><h1>Title</h1><p>Text.</p></main>"
            "<aside><a href=d>D</a></aside><footer>(c) us <a href=e>E</a></footer>"
        )
        assert [b.text for b in got.blocks] == ["Title", "Text."]
        assert got.skipped_parts == (SkippedPart("navigation", 6, "links left out"),)

    def test_without_a_main_element_the_rest_goes(self) -> None:
        assert texts(
            "<div id=sidebar><ul><li><a href=a>Alpha</a><li><a href=b>Beta</a></ul></div>"
            "<div class=body><p>Text with <a href=c>a link</a>.</p></div><footer>us</footer>"
        ) == ["Text with a link."]

    def test_words_in_a_class_do_not_cost_text(self) -> None:
        assert texts(
            "<div class='header'><h1>Name</h1></div><div class='menu-page'><p>All the text.</p>"
            "</div><div class='sidebar'><p>Prose beside it, which is no list of links.</p></div>"
        ) == ["Name", "All the text.", "Prose beside it, which is no list of links."]

    def test_contents_of_the_page_itself_go_and_of_others_stay(self) -> None:
        assert texts(
            "<div class=toc><ul><li><a href='#a'>Alpha</a><li><a href='#b'>Beta</a></ul></div>"
            "<h2>T</h2>"
            "<div class=toc><ul><li><a href='a.html'>Gamma</a><li><a href='b.html'>D</a></ul></div>"
        ) == ["T", "- Gamma", "- D"]

    def test_what_is_not_shown_is_no_text(self) -> None:
        got = page(
            "<p>seen<!-- not --><span hidden> a</span><span style='display: none'> b</span>"
            "<span aria-hidden=true> c</span></p><template><p>d</p></template>"
            "<noscript>e</noscript>"
            "<script>f</script><style>g</style><svg><text>h</text></svg><button>i</button>"
        )
        assert [b.text for b in got.blocks] == ["seen"]
        assert SkippedPart("hidden parts", 3) in got.skipped_parts

    def test_panels_of_tabs_are_shown_in_turn(self) -> None:
        assert texts("<div role=tabpanel>one</div><div role=tabpanel hidden>two</div>") == [
            "one", "two",
        ]  # fmt: skip

    def test_a_title_beside_the_content_is_kept(self) -> None:
        assert texts("<div id=header><h1>git-x</h1></div><div id=content><p>Text.</p></div>") == [
            "git-x", "Text.",
        ]  # fmt: skip

    def test_the_whole_page_may_be_links(self) -> None:
        assert texts("<body><ul><li><a href=a>Alpha</a><li><a href=b>Beta</a></ul>") == [
            "- Alpha", "- Beta",
        ]  # fmt: skip

    def test_xhtml_may_close_any_element_by_its_own_tag(self) -> None:
        raw = b"<html xmlns='http://www.w3.org/1999/xhtml'><head><title/></head><body><p>a</p>"
        assert [block.text for block in extract(raw, LIMITS).blocks] == ["a"]

    def test_navigation_alone_is_the_text(self) -> None:
        assert texts("<nav><ul><li><a href=a>Alpha</a><li><a href=b>Beta</a></ul></nav>") == [
            "- Alpha", "- Beta",
        ]  # fmt: skip

    def test_a_main_element_that_is_empty_is_no_main_text(self) -> None:
        assert texts("<main></main><p>Text.</p>") == ["Text."]

    def test_signatures_of_doxygen_are_one_line(self) -> None:
        assert texts(
            "<div class=headertitle><div class=title>f.h File</div></div>"
            "<table class=memname><tr><td>int f</td><td>(</td><td>int</td><td>a,</td></tr>"
            "<tr><td></td><td>int</td><td>b</td><td>)</td></tr></table>"
        ) == ["f.h File", "int f ( int a, int b )"]


class TestAbout:
    @pytest.mark.parametrize(
        ("title", "heading", "expected"),
        [
            ("Queues — Foo 1.2 documentation", "Queues", "Queues"),
            ("Queues | Site", "queues", "queues"),
            ("Foo: Queues", "Queues", "Queues"),
            ("Queues and more", "Queues", "Queues and more"),
            ("Guide - Site", "Queues", "Guide - Site"),
            ("", "Queues", "Queues"),
            ("Queues", "", "Queues"),
        ],
    )
    def test_title_without_site(self, title: str, heading: str, expected: str) -> None:
        assert title_without_site(title, heading) == expected

    def test_date_and_tags(self) -> None:
        got = page(
            "<p>x",
            "<meta name=keywords content='a, b ,a,,c d'><meta name=date content=2020-01-02>"
            "<meta property='article:modified_time' content='2024-03-17T10:00:00Z'>",
        )
        assert (got.date, got.tags) == ("2024-03-17", ("a", "b", "c d"))

    def test_only_what_says_that_it_was_changed_is_a_date(self) -> None:
        assert page("<p>x<time datetime=2024-01-01>then</time>").date == ""
        assert page("<p>x<time class=updated datetime=2024-01-01>then</time>").date == "2024-01-01"
        assert page("<p>x", "<meta name=date content='2024-13-45'>").date == ""


class TestEncoding:
    @pytest.mark.parametrize(
        ("head", "encoding"),
        [
            ("<meta charset=windows-1251>", "cp1251"),
            ('<meta http-equiv=Content-Type content="text/html; charset=iso-8859-1">', "cp1252"),
            ("<meta charset=Shift_JIS>", "cp932"),
            ("<meta charset=nonsense>", "utf-8"),
            ("<meta charset=utf-16>", "utf-8"),
            ("", "utf-16"),
            ("", "utf-8-sig"),
        ],
    )
    def test_declared(self, head: str, encoding: str) -> None:
        word = {"cp1251": "Привет", "cp932": "日本語テキスト"}.get(encoding, "naïve café – été")
        raw = f"<html><head>{head}</head><body><p>{word}</p>".encode(encoding, "replace")
        assert extract(raw, LIMITS).blocks[0].text == word

    def test_utf8_that_declares_something_else_is_utf8(self) -> None:
        raw = "<meta charset=iso-8859-1><p>été – naïve</p>".encode()
        assert extract(raw, LIMITS).blocks[0].text == "été – naïve"

    @pytest.mark.parametrize(
        "name", ["hex", "rot13", "base64", "zip", "punycode", "idna", "unicode_escape"]
    )
    def test_a_codec_that_is_no_encoding_of_text_is_not_used(self, name: str) -> None:
        raw = f"<meta charset={name}><p>caf\xe9 au lait, \xe0 bient\xf4t".encode("latin-1")
        assert "caf" in decode_markup(raw)


class TestIsDocument:
    @pytest.mark.parametrize(
        "text",
        [
            "<!DOCTYPE html><p>x",
            "\ufeff<!-- made by x --> <!doctype HTML public '-//W3C'><html>",
            "<?xml version='1.0'?>\n<html xmlns='http://www.w3.org/1999/xhtml'>",
            "<html lang=en><body>x",
            "<!doctype html><body><pre>{{ name }} {% if %}</pre><script>`{{x}}`</script>",
            "<!doctype html><body><p>Write {{ name }} for the name.",
        ],
    )
    def test_pages(self, text: str) -> None:
        assert is_document(text.encode())

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "plain text",
            "<div>a fragment</div>",
            "<template><div/></template>",
            "{% extends 'base.html' %}<!doctype html>",
            "<!doctype html><html><head><title>{{ title }}</title></head>",
            "<!doctype html><body><a href='{{ url }}'>x</a>",
            "<!doctype html><body>{% block x %}{% endblock %}",
            "<!doctype html><body><% if x %>",
            "<!doctype html><body><?php echo 1 ?>",
            "<html><head>%sveltekit.head%</head>",
            "<html><body ng-app='x'>",
            "<html><body><div v-if='x'>",
            "<svg xmlns='x'/>",
        ],
    )
    def test_others(self, text: str) -> None:
        assert not is_document(text.encode())

    def test_bytes_of_any_kind(self) -> None:
        assert not is_document(bytes(range(256)) * 40)
        assert not is_document(b"%PDF-1.7")


PAGE = (
    "<!doctype html><html><head><title>T - S</title><meta name=keywords content='a,b'></head>"
    "<body><nav><a href=x>n</a></nav><main><h1>T</h1><p>Some <a href='y#z'>text</a> é.</p>"
    "<ul><li>one<ol><li>two</ol></ul><table><tr><th>a<th>b<tr><td>1<td>2</table>"
    "<pre>x\n y</pre><!-- c --><dl><dt>t<dd>d</dl></main><script>if(a<b)</script></body></html>"
).encode()


class TestHostile:
    def test_cut_off_anywhere(self) -> None:
        for length in range(0, len(PAGE), 3):
            got = _survived(PAGE[:length])
            if got is not None:
                _check(got)

    def test_the_same_bytes_give_the_same(self) -> None:
        assert extract(PAGE, LIMITS) == extract(PAGE, LIMITS)

    def test_empty(self) -> None:
        assert extract(b"", LIMITS) == Extracted(())
        assert extract(b" \n<html></html>", LIMITS).blocks == ()

    @pytest.mark.parametrize(
        ("markup", "why"),
        [
            ("<div id=root></div><script src=a.js></script>", "scripts"),
            ("<body><noscript>Enable JavaScript</noscript>", "scripts"),
            ("<body><nav><a href=a>Home</a></nav><main></main><script>x</script>", "scripts"),
            ("<body><p hidden>secret</p>", "hidden"),
            ("<img src=a.png>", "images"),
        ],
    )
    def test_no_text(self, markup: str, why: str) -> None:
        with pytest.raises(ExtractionError, match=why) as caught:
            extract(markup.encode(), LIMITS)
        assert caught.value.code == "no_text"

    def test_nested_deep(self) -> None:
        for tag in ("div", "ul><li", "blockquote", "b", "table><tr><td", "dl><dd", "nav", "toc"):
            raw = (f"<{tag}>" * 5000 + "deep text").encode()
            got = _survived(raw)
            assert got is not None
            assert got.blocks == () or "deep text" in got.blocks[-1].text

    def test_nested_too_deep(self) -> None:
        with pytest.raises(ExtractionError) as caught:
            extract(b"<div>" * 50_000, LIMITS)
        assert caught.value.code == "too_big"

    def test_too_many_attributes(self) -> None:
        with pytest.raises(ExtractionError) as caught:
            extract(b"<p " + b" ".join(b"a%d=1" % n for n in range(20_000)) + b">x", LIMITS)
        assert caught.value.code == "too_big"

    def test_too_many_tags(self) -> None:
        with pytest.raises(ExtractionError) as caught:
            extract(b"<p>" * 2_000_001, LIMITS)
        assert caught.value.code == "too_big"

    def test_too_many_bytes(self) -> None:
        with pytest.raises(ExtractionError) as caught:
            extract(b"<p>12345", ExtractLimits(max_bytes=5))
        assert caught.value.code == "too_big"

    def test_many_blocks_end_at_the_limit(self) -> None:
        raw = b"<p>word</p>" * 120_000
        got = extract(raw, LIMITS)
        assert len(got.blocks) == LIMITS.max_blocks
        assert got.skipped_parts[-1].what == "rest"

    def test_much_text_ends_at_the_limit(self) -> None:
        limits = ExtractLimits(max_chars=1000)
        got = extract(b"<p>" + b"word " * 100 + b"<p>" + b"word " * 10_000, limits)
        assert sum(len(block.text) for block in got.blocks) <= 1000
        assert got.skipped_parts[-1].what == "rest"

    def test_one_long_paragraph_is_cut_at_words(self) -> None:
        blocks = extract(b"<p>" + b"word " * 100_000, LIMITS).blocks
        assert len(blocks) > 1
        assert {word for block in blocks for word in block.text.split()} == {"word"}

    def test_tag_soup(self) -> None:
        for text in (
            "</p></div><<<>><p <p<p>x</td></tr><table><p>y<tr>z</table></b><i>",
            "<p>a\0b<p>&#0;&#x110000;&#xd800;&notanentity;&",
            "<select><table><tr><td>x</select>y<frameset><frame></frameset>",
            "<svg><p>x</p><foreignObject><table></svg>y",
            "<title>never closed <p>x",
            "<!-- never closed <p>x",
            "<plaintext><p>x</p>",
            "<math><mi>x</mi><annotation>\\x</annotation></math>",
            "<table><td rowspan=-1 colspan=x>a<td rowspan=65534>b<tr><td>c</table>",
            "<ol start=99999999999999999999><li value=-99999999>x</ol>",
        ):
            got = _survived(text.encode())
            if got is not None:
                _check(got)

    def test_bytes_that_are_no_page(self) -> None:
        for raw in (b"%PDF-1.7\n\0\1\2\xff" * 50, b"PK\3\4" + b"\0" * 500, bytes(range(256))):
            got = _survived(raw)
            if got is not None:
                _check(got)


def _survived(raw: bytes) -> Extracted | None:
    """What was read; None if it was refused by a fault that the contract knows."""
    try:
        return extract(raw, LIMITS)
    except ExtractionError as exc:
        code = exc.code
    assert code in ("no_text", "too_big", "damaged")
    return None


def _check(got: Extracted) -> None:
    for block in got.blocks:
        assert block.text
        assert block.text == block.text.strip()
        assert not set(block.text) & {chr(n) for n in (*range(9), *range(14, 32), 127, 0xAD)}
        for link in block.links:
            assert block.text[link.start : link.end].strip()
