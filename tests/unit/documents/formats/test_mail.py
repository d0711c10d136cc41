"""Mails: headers as they were meant, the right text, attachments, and broken ones."""

from __future__ import annotations

import base64
from email.message import EmailMessage

import pytest

from ragx.documents.formats.base import Extracted, ExtractLimits, SkippedPart
from ragx.documents.formats.mail.document import extract
from ragx.errors import ExtractionError

LIMITS = ExtractLimits()
HEAD = "From: Ann <ann@example.org>\nTo: bob@example.org\nSubject: Tides\n"


def message(text: str = "Hello Bob,\n\nthe tide is high.\n") -> EmailMessage:
    mail = EmailMessage()
    mail["From"] = "Ann <ann@example.org>"
    mail["To"] = "bob@example.org"
    mail["Subject"] = "Tides"
    mail["Date"] = "Sat, 01 Feb 2003 23:30:00 -0800"
    if text:
        mail.set_content(text)
    return mail


def read(mail: EmailMessage | str | bytes) -> Extracted:
    if isinstance(mail, EmailMessage):
        mail = mail.as_bytes()
    return extract(mail.encode() if isinstance(mail, str) else mail, LIMITS)


def body(mail: EmailMessage | str | bytes) -> list[str]:
    """Texts after the block of headers."""
    return [block.text for block in read(mail).blocks][1:]


def places(found: Extracted) -> list[tuple[int, str]]:
    return list(dict.fromkeys((block.place.number, block.place.name) for block in found.blocks))


def fault(raw: bytes) -> tuple[str, str]:
    with pytest.raises(ExtractionError) as caught:
        extract(raw, LIMITS)
    return caught.value.code, str(caught.value)


def test_headers_then_paragraphs() -> None:
    found = read(message())
    assert [(block.kind, block.text) for block in found.blocks] == [
        (
            "text",
            f"{HEAD}Date: Sat, 01 Feb 2003 23:30:00 -0800",
        ),
        ("text", "Hello Bob,"),
        ("text", "the tide is high."),
    ]
    assert places(found) == [(1, "message")]
    assert (found.title, found.date, found.tags) == ("Tides", "2003-02-01", ())


def test_quotes_lists_signatures_and_patches() -> None:
    text = (
        "Ann wrote:\n> high\n> tide\n>\n> > older\n\n* one\n* two\n\n----------\n\n"
        "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n\n-- \nBob\n"
    )
    found = read(HEAD + "\n" + text)
    assert [(block.kind, block.text) for block in found.blocks][1:] == [
        ("text", "Ann wrote:\n> high\n> tide"),
        ("text", "> > older"),
        ("list", "- one\n- two"),
        ("code", "diff --git a/x b/x\n@@ -1,2 +1,2 @@\n-old\n+new"),
        ("text", "--\nBob"),
    ]


def test_clear_text_that_is_signed() -> None:
    found = read(
        HEAD + "\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nSigned: text\n\n- --\nAnn\n"
        "-----BEGIN PGP SIGNATURE-----\nVersion: 1\n\niQIz+/\n=ZGd6\n-----END PGP SIGNATURE-----\n"
    )
    assert [block.text for block in found.blocks[1:]] == ["Signed: text", "--\nAnn"]
    assert found.skipped_parts == (SkippedPart("signatures", 1),)


def test_flowed_lines_are_joined() -> None:
    flowed = "Content-Type: text/plain; format=flowed\n\n"
    text = (
        "One long \nline here.\nA new line.\n> quoted \n> text\n>> deeper \n> back\n from\n\n"
        "-- \nB \nC\n"
    )
    assert body(HEAD + flowed + text) == [
        "One long line here.\nA new line.\n> quoted text\n>> deeper\n> back\nfrom",
        "--\nB C",
    ]
    without = "Content-Type: text/plain; format=flowed; delsp=yes\n\n"
    assert body(HEAD + without + "日本 \n語\n") == ["日本語"]


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("=?utf-8?q?caf=C3=A9_au?= lait", "café au lait"),
        ("=?UTF-8?B?5pel?=\n =?utf-8?b?5pys?=", "日本"),
        ("=?utf-8?b?5pel5g==?= =?utf-8?b?nKw=?=", "日本"),
        ("=?iso-8859-1?q?=93x=94?=", "“x”"),
        ("=?utf-8*en?q?x?=", "x"),
        ('"=?koi8-r?b?8NLJ18XU?="', '"Привет"'),
        ("=?no-such?q?x=E9?=", "xé"),
        ("=?rot13?q?x?= =?idna?q?y?=", "xy"),
        ("=?utf-8?b?!!!?=", ""),
        ("=?utf-8?q?open", "=?utf-8?q?open"),
        ("a\n\tb   c", "a b c"),
    ],
)
def test_encoded_headers(value: str, title: str) -> None:
    assert read(f"From: a@example.org\nSubject: {value}\n\nx\n").title == title


def test_raw_bytes_in_headers() -> None:
    assert read(b"From: a@b\nSubject: caf\xc3\xa9\n\nx").title == "café"
    assert read(b"From: a@b\nSubject: caf\xe9\n\nx").title == "café"


@pytest.mark.parametrize(
    ("date", "day"),
    [
        ("Sat, 01 Feb 2003 23:30:00 -0800", "2003-02-01"),
        ("1 Feb 03 01:00 +1300", "2003-02-01"),
        ("Sat, 31 Feb 2003 10:00:00 +0000", ""),
        ("Thu, 01 Jan 9999 00:00:00 +0000", ""),
        ("Sat, 01 Feb 2003 23:30:00 +999999999999", ""),
        ("tomorrow", ""),
        ("", ""),
    ],
)
def test_dates(date: str, day: str) -> None:
    assert read(f"From: a@b\nDate: {date}\n\nx\n").date == day


@pytest.mark.parametrize(
    ("charset", "raw", "text"),
    [
        ("iso-8859-1", b"caf\xe9 \x93x\x94", "café “x”"),
        ("us-ascii", b"caf\xc3\xa9", "café"),
        ("utf-8", b"caf\xe9", "café"),
        ("no-such-thing", b"caf\xc3\xa9", "café"),
        ("utf-8", "д".encode() * 20 + b"\xd0", "д" * 20 + "\ufffd"),
        ("gb2312", b"\xd6\xd0\xce\xc4", "中文"),
        ("iso-2022-jp", b"\x1b$BF|K\\\x1b(B", "日本"),
        ("windows-1256", b"\xe3\xd1\xcd\xc8\xc7", "مرحبا"),
        ("zlib", b"abc", "abc"),
        ("undefined", b"abc", "abc"),
    ],
)
def test_charsets(charset: str, raw: bytes, text: str) -> None:
    head = f"From: a@b\nContent-Type: text/plain; charset={charset}\n".encode()
    assert body(head + b"Content-Transfer-Encoding: 8bit\n\n" + raw) == [text]
    encoded = base64.encodebytes(raw)
    assert body(head + b"Content-Transfer-Encoding: base64\n\n" + encoded) == [text]


def test_broken_encodings() -> None:
    head = "From: a@b\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: "
    assert body(head + "base64\n\naGVsbG8gd29ybGQ\n") == ["hello world"]
    assert body(head + "base64\n\naGVs!!bG8=\n") == ["hello"]
    assert body(head + "quoted-printable\n\ncaf=C3=A9 =ZZ =\nx=\n") == ["café =ZZ x"]
    assert body(head + "strange\n\nas it is\n") == ["as it is"]
    assert body(head + "x-uuencode\n\nno uu here\n") is not None


def test_of_alternatives_the_plain_one() -> None:
    mail = message("Plain text that says all there is to say about it.")
    mail.add_alternative("<p>Rich text</p>", subtype="html")
    assert body(mail) == ["Plain text that says all there is to say about it."]


def test_a_plain_text_that_says_nothing_gives_way() -> None:
    mail = message("Please use another program.")
    mail.add_alternative(f"<p>Rich text</p><p>{'words and words ' * 20}</p>", subtype="html")
    assert body(mail)[0] == "Rich text"


def test_html_only() -> None:
    mail = message("")
    mail.set_content("<html><body><p>Rich <b>t&eacute;xt</b></p></body></html>", subtype="html")
    found = read(mail)
    assert found.blocks[1].text == "Rich téxt"
    assert places(found) == [(1, "message")]


def test_attached_texts_are_parts_and_others_are_named() -> None:
    mail = message()
    mail.add_attachment("a line\n\nanother\n", filename="notes.txt")
    mail.add_attachment("import os\n\nos.abort()\n", filename="run.py")
    mail.add_attachment(
        b"#!/bin/sh\nls\n", maintype="application", subtype="octet-stream", filename="go.sh"
    )
    mail.add_attachment(b"%PDF-1.7\n", maintype="application", subtype="pdf", filename="report.pdf")
    mail.add_attachment(b"\x00\x01\x02" * 50, maintype="text", subtype="plain", filename="odd.txt")
    mail.add_attachment(b"\x89PNG\r\n", maintype="image", subtype="png", filename="é.png")
    found = read(mail)
    assert places(found) == [(1, "message"), (2, "notes.txt"), (3, "run.py"), (4, "go.sh")]
    assert [(block.kind, block.text, block.language) for block in found.blocks[3:]] == [
        ("text", "a line", ""),
        ("text", "another", ""),
        ("code", "import os\n\nos.abort()", "python"),
        ("code", "#!/bin/sh\nls", "bash"),
    ]
    assert found.skipped_parts == (SkippedPart("attachments", 3, "report.pdf, odd.txt, é.png"),)


def test_inline_images_and_signatures_are_counted() -> None:
    raw = (
        HEAD + 'Content-Type: multipart/signed; boundary="b"\n\n'
        '--b\nContent-Type: multipart/related; boundary="c"\n\n--c\n\ntext\n'
        "--c\nContent-Type: image/png\nContent-ID: <i>\n\nxx\n--c--\n"
        '--b\nContent-Type: application/pgp-signature; name="s.asc"\n\nyy\n--b--\n'
    )
    found = read(raw)
    assert [block.text for block in found.blocks[1:]] == ["text"]
    assert found.skipped_parts == (SkippedPart("images", 1), SkippedPart("signatures", 1))


def test_forwarded_mails_are_parts() -> None:
    inner = message("Inner text\n")
    inner.replace_header("Subject", "Inner")
    inner.add_attachment("deep\n", filename="deep.txt")
    outer = message("Outer text\n")
    outer.add_attachment(inner)
    outer.add_attachment("last\n", filename="last.txt")
    found = read(outer)
    assert places(found) == [(1, "message"), (2, "Inner"), (3, "deep.txt"), (4, "last.txt")]
    assert "Inner text" in [block.text for block in found.blocks if block.place.number == 2]


def test_mails_nested_too_deep_are_counted() -> None:
    mail = message("core")
    for _ in range(8):
        outer = message("around")
        outer.add_attachment(mail)
        mail = outer
    found = read(mail)
    assert len(places(found)) == 6
    assert found.skipped_parts == (SkippedPart("messages inside messages", 1),)


def test_reports_of_delivery_are_text() -> None:
    raw = (
        HEAD + "Content-Type: multipart/report; boundary=b\n\n--b\n\nIt failed.\n"
        "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\n"
        "Final-Recipient: rfc822; y@z\n\n--b--\n"
    )
    assert body(raw) == ["It failed.", "Reporting-MTA: dns; x", "Final-Recipient: rfc822; y@z"]


@pytest.mark.parametrize(
    "content",
    [
        "Content-Type: multipart/encrypted; boundary=b\n\n--b\n\nVersion: 1\n--b\n\nxx\n--b--\n",
        "Content-Type: application/pkcs7-mime; smime-type=enveloped-data\n\nMIIB\n",
        "\n-----BEGIN PGP MESSAGE-----\n\nhQ\n-----END PGP MESSAGE-----\n",
    ],
)
def test_encrypted_mails_say_so(content: str) -> None:
    code, why = fault((HEAD + content).encode())
    assert code == "encrypted"
    assert why.startswith("its text is encrypted")


def test_an_encrypted_part_beside_text_is_counted() -> None:
    raw = (
        HEAD + "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nreadable\n"
        "--b\nContent-Type: application/pkcs7-mime\n\nMIIB\n--b--\n"
    )
    assert read(raw).skipped_parts == (SkippedPart("encrypted parts", 1),)


def test_what_stands_before_the_header_does_no_harm() -> None:
    for before in (
        "\n\n",
        "\ufeff",
        "From ann@example.org Sat Feb  1 23:30:00 2003\n",
        ">From x\n",
    ):
        assert read(f"{before}{HEAD}\ntext").title == "Tides"
        assert body(f"{before}{HEAD}\r\ntext") == ["text"]


def test_nothing_is_nothing() -> None:
    assert extract(b"", LIMITS) == Extracted(())
    assert extract(b"\n \n", LIMITS) == Extracted(())


@pytest.mark.parametrize(
    "raw", [b"Dear Bob,\n\nno header here\n", b"\x00\x01\x02", b"%PDF-1.4\n", b"note: hello\n\nx"]
)
def test_what_has_no_header_is_damaged(raw: bytes) -> None:
    assert fault(raw) == ("damaged", "it is not a mail: no header")


def test_cut_off_anywhere_it_gives_what_is_left() -> None:
    mail = message()
    mail.add_alternative("<p>Rich</p>", subtype="html")
    mail.add_attachment("notes\n", filename="notes.txt")
    mail.add_attachment(b"%PDF" * 40, maintype="application", subtype="pdf", filename="a.pdf")
    raw = mail.as_bytes()
    assert SkippedPart("rest", 0, "the file is cut off") not in read(raw).skipped_parts
    for length in range(6, len(raw)):
        read(raw[:length])
    assert SkippedPart("rest", 0, "the file is cut off") in read(raw[: len(raw) // 2]).skipped_parts


def test_odd_types_and_parameters() -> None:
    for value in (
        "text", "/", "multipart/mixed", "multipart/alternative; boundary=", "message/rfc822",
        "text/plain; charset", 'text/plain; charset="', "text/plain; charset*=x'y'z; charset*0*=%",
        "text/plain; name*0*=utf-8''a%; name*1=b", "message/partial; id=1", "\x00", "a/b/c",
        "multipart/mixed; boundary=" + "b" * 10_000, "text/html; charset=\ufffd",
    ):  # fmt: skip
        raw = f"{HEAD}Content-Type: {value}\n\n--b\n\ntext\n--b--\n".encode()
        assert read(raw).title == "Tides"


def test_headers_of_endless_parameters_are_refused() -> None:
    code, why = fault(f"{HEAD}Content-Type: text/plain{';' * 100_000}\n\nx".encode())
    assert (code, why) == ("damaged", "it has a header of 100,024 bytes")


def test_parts_nested_too_deep() -> None:
    nested = "".join(
        f"Content-Type: multipart/mixed; boundary=b{n}\n\n--b{n}\n" for n in range(2_000)
    )
    assert fault((HEAD + nested).encode()) == ("damaged", "its parts are nested too deep")


def test_many_parts_and_long_lines() -> None:
    parts = "--b\n\nword\n" * 3_000
    raw = f"{HEAD}Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n"
    assert len(body(raw)) == 3_000
    assert body(HEAD + "\n" + "x" * 1_000_000) == ["x" * 1_000_000]
    assert len(read("Subject: " + "=?utf-8?q?x?= " * 50_000 + "\n\nx").title) < 20_000


def test_limits_hold() -> None:
    mail = message("word\n\n" * 1_000)
    few = extract(mail.as_bytes(), ExtractLimits(max_blocks=10))
    assert len(few.blocks) == 10
    assert few.skipped_parts[-1].note == "all from part 1 message on: over 10 blocks"
    long = message()
    long.add_attachment("word " * 50_000, filename="long.txt")
    found = read(long)
    assert found.skipped_parts == (SkippedPart("characters of attachments", 50_001),)


def test_right_to_left_and_hidden_marks() -> None:
    assert body(f"{HEAD}\nשלום\u200f עולם\u200b\n\nof\ufb01ce\u00ad\n") == ["שלום עולם", "office"]
