"""Secrets in URLs are never shown: in texts, errors, on the command line, in logs."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import re
import sys
import time
from unittest import mock
from urllib.parse import quote

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from quire import redact
from quire.errors import EmbeddingError, LibraryError, NoResults, SettingError, SourceError
from quire.surfaces import cli, render
from tests import postgres

SHOWN = {
    "postgresql://quire:secret@db.example.com/quire": "postgresql://quire:…@db.example.com/quire",
    "postgres://:secret@db:5432/quire": "postgres://:…@db:5432/quire",
    "postgresql://quire@db.example.com/quire": "postgresql://quire@db.example.com/quire",
    "postgresql://db.example.com:5432/quire": "postgresql://db.example.com:5432/quire",
    "postgresql:/quire:secret@db/quire": "postgresql:/quire:…@db/quire",
    "postgresql://u:a@b:c/d#e?f%g h@db/quire": "postgresql://u:…@db/quire",
    "postgresql://u:a://b@db/quire": "postgresql://u:…@db/quire",
    "postgresql://u:p@h/db?password=a@b&sslmode=disable": "postgresql://u:…@h/db?password=…&sslmode=disable",
    "postgresql://u@h:1/db?password=a@b": "postgresql://u@h:1/db?password=…",
    "postgresql://h:1/db?password=a@b": "postgresql://h:…",  # too much rather than too little
    "from postgresql://a:b@h1/x to postgresql://c:d@h2/y": (
        "from postgresql://a:…@h1/x to postgresql://c:…@h2/y"
    ),
    "https://user:secret@example.com/a": "https://…@example.com/a",
    "https://user:se/c?r#et@example.com/a": "https://…@example.com/a",
    "https://ghp_abcdef@github.com/a/b": "https://…@github.com/a/b",
    "https://host:8080/@name": "https://host:8080/@name",
    "http://[::1]:8080/@name": "http://[::1]:8080/@name",
    "https://medium.com/@name: not found": "https://medium.com/@name: not found",
    "https://example.com: ask me@example.com": "https://example.com: ask me@example.com",
    "https://a.example/?next=https://u:secret@b.example/": "https://a.example/?next=https://…@b.example/",
    "https://a.example/web/https://u:secret@b.example/": "https://a.example/web/https://…@b.example/",
    "https://h/?token=abc&page=2": "https://h/?token=…&page=2",
    "https://h/?access_token=abc#top": "https://h/?access_token=…",
    "https://h/?a=1&api_key=abc": "https://h/?a=1&api_key=…",
    "https://h/?key=abc&monkey=1": "https://h/?key=…&monkey=1",
    "https://h/?client_secret=abc": "https://h/?client_secret=…",
    "host=db password=secret user=me": "host=db password=… user=me",
    r"host=db password='a \' b' user=me": "host=db password=… user=me",
    'password = "a b"\nhost = "db"': 'password = …\nhost = "db"',
    "https://h/?token=a&b&page=2": "https://h/?token=…&page=2",
    "docs:guide@2.md": "docs:guide@2.md",
    "": "",
}


@pytest.mark.parametrize("text", SHOWN)
def test_secrets_are_hidden_and_the_rest_stays(text: str) -> None:
    """BAD_INPUTS: passwords in any form of URL are never shown; host and database stay readable."""
    assert redact.text(text) == SHOWN[text]
    assert redact.text(SHOWN[text]) == SHOWN[text]


# ------------------------------------------------------------------------------- any password

FORMS = {
    "postgresql": "postgresql://quire:{}@127.0.0.1:1/quire",
    "postgres": "postgres://quire:{}@127.0.0.1:1/quire?connect_timeout=2",
    "alone": "postgresql://:{}@127.0.0.1:1/quire",
    "http": "https://quire:{}@127.0.0.1/quire",
    "token": "https://127.0.0.1/quire?page=1&access_token={}&x=1",
    "option": "postgresql://quire@127.0.0.1:1/quire?password={}&connect_timeout=2",
    "ssl": "postgresql://quire@127.0.0.1:1/quire?connect_timeout=2&sslpassword={}",
    "libpq": "host=127.0.0.1 password={} port=1",
    "quoted": "host=127.0.0.1 password='{}' port=1",
}
PRINTABLE = st.characters(exclude_categories=("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
PASSWORDS = st.text(PRINTABLE, min_size=4, max_size=20) | st.text("ab1@:/#?%&=' \"\\", min_size=4, max_size=9)


def filled(form: str, password: str, encoded: bool) -> str:
    """A URL with a password in it, written as one writes it there."""
    if form == "quoted":
        return FORMS[form].format(password.replace("\\", "\\\\").replace("'", "\\'"))
    if form == "libpq":
        return FORMS[form].format("".join(f"\\{c}" if c in " \\'" else c for c in password))
    return FORMS[form].format(quote(password, safe="") if encoded else password)


def assume_it_could_be_seen(form: str, password: str) -> None:
    """Leave out passwords that stand elsewhere in the URL, and what is no password to any reader."""
    assume(password.strip() == password)
    assume(password not in FORMS[form].format("") + redact.HIDDEN)
    assume(not (form == "http" and password[0].isdigit()))  # host:8080/@name has none
    assume(not re.search(r"&[\w.-]+=", password))  # the next option begins there


@given(st.sampled_from(sorted(FORMS)), PASSWORDS, st.booleans())
@example("postgresql", "p://x", False)
@example("http", "@:/#?%", False)
def test_no_password_is_in_a_redacted_text(form: str, password: str, encoded: bool) -> None:
    """Any printable password, encoded or not, in any form of URL, in any text."""
    assume_it_could_be_seen(form, password)
    url = filled(form, password, encoded)
    for shown in (redact.text(url), redact.text(f"({url}): :"), redact.url(url)):
        assert password not in shown
        assert quote(password, safe="") not in shown
        assert "127.0.0.1" in shown
        assert redact.text(shown) == shown


@given(st.sampled_from(sorted(FORMS)), PASSWORDS, st.booleans())
def test_no_password_is_in_an_error(form: str, password: str, encoded: bool) -> None:
    """Errors are safe to show, in whole and by their fields."""
    assume_it_could_be_seen(form, password)
    url = filled(form, password, encoded)
    library, source = LibraryError(url, url), SourceError(url, url)
    others = [SettingError(url, url), EmbeddingError(url, url), NoResults(url)]
    said = [library.library, source.source, source.reason, *map(str, [library, source, *others])]
    assert [text for text in said if password in text] == []


USUAL = (
    "quire: cannot be opened: connection failed: connection to server at port failed: Connection refused Is "
    "the server running on that host and accepting TCP/IP connections? is not clear: it could be read in two "
    "ways. Percent-encode special characters in its password and options: @ is %40, / is %2F, a space is %20."
    " is not a URL that PostgreSQL understands"
)


@postgres.needs_postgres
@settings(max_examples=60)
@given(
    st.sampled_from(["postgresql", "postgres", "alone", "option"]), PASSWORDS, st.booleans(), st.booleans()
)
@example("postgresql", "p%zz", False, False)
@example("postgresql", "abc@def", False, True)
@example("postgresql", "12/34@5", False, True)
@example("postgresql", "ab[cd", False, False)
def test_no_password_is_in_what_status_prints(form: str, password: str, encoded: bool, as_json: bool) -> None:
    """`quire status` names the server that does not answer, and neither shows the password nor sends it."""
    assume_it_could_be_seen(form, password)
    assume(password not in USUAL)
    out, err = printed("status", "-L", filled(form, password, encoded), *(["--json"] if as_json else []))
    assert out == ""
    assert "@127.0.0.1:1/quire" in err
    assert password not in err
    assert "Traceback" not in err


def printed(*args: str) -> tuple[str, str]:
    """What a command prints on stdout and stderr, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["quire", *args]),
        pytest.raises(SystemExit),
    ):
        cli.main()
    return out.getvalue(), err.getvalue()


# ------------------------------------------------------------------------------------- surfaces


def test_status_shows_the_library_without_its_password() -> None:
    """The status of a library names its host and database, as text and as JSON."""
    from quire.stores import Counts

    shown = render.status_json("postgresql://me:secret@db/quire", Counts(0, 0, 0, 0, {}), [], {})
    assert shown["library"] == "postgresql://me:…@db/quire"
    assert next(iter(render.status_lines(json.loads(json.dumps(shown))))) == "postgresql://me:…@db/quire"


def test_the_log_of_the_server_holds_no_password() -> None:
    """What the MCP server logs, tracebacks included, is redacted."""
    from quire.surfaces.logs import OneLine

    try:
        raise ValueError("postgresql://me:secret@db/quire")
    except ValueError:
        record = logging.LogRecord("quire", 40, "", 0, "%s", ("https://a:secret@b/",), sys.exc_info())
    assert "ValueError: postgresql://me:…@db/quire" in OneLine().format(record)
    assert "secret" not in OneLine().format(record)


def test_a_url_without_its_scheme_is_not_taken_for_a_file() -> None:
    """A library given as user:password@host is refused, and not shown."""
    for url in ("quire:secret@db/quire", "postgresql:quire:secret@db/quire", "//quire:secret@db/quire"):
        _, err = printed("status", "-L", url)
        assert "Begin the URL with postgresql://" in err
        assert "secret" not in err


@pytest.mark.parametrize(
    "part",
    [
        "a",
        "@",
        "postgresql://a:",
        "/https://a:",
        " http://a:b?key=@",
        "?password=",
        "password='",
        "?a_",
        "=\n",
    ],
)
def test_hostile_text_takes_linear_time(part: str) -> None:
    """A megabyte is redacted in the time of a megabyte, whatever it holds."""
    text = part * (1_000_000 // len(part)) + "@"
    began = time.process_time()
    redact.text(text)
    redact.url(text)
    assert time.process_time() - began < 10
