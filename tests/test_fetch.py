"""One safe GET: every URL row of BAD_INPUTS against a real server on loopback.

Names are looked up by a resolver of the test. Where a public address is meant, the last step to the
internet leads to the server instead, and is written down.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import itertools
import socket
import ssl
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator, Sequence
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quire.config import WebSettings
from quire.errors import (
    NotFound,
    NotText,
    Refused,
    SettingError,
    SourceError,
    TooLarge,
    TransientError,
)
from quire.sources.charset import likely_charset
from quire.sources.web import Fetcher, normalise_url
from quire.sources.web.decompress import Decompressor
from quire.sources.web.guard import Resolve, is_public
from quire.sources.web.response import Decoder, Response
from tests.web_server import MIB, Handler, Site, bomb, cut_off, drip, reply, reset, silent, site

PUBLIC = "93.184.216.34"
DOCS = "http://docs.example"


@pytest.fixture
def web() -> Iterator[Site]:
    with site() as web:
        yield web


@pytest.fixture
def roads(web: Site, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The addresses that are connected to; all of them lead to the site."""
    taken: list[tuple[str, int]] = []
    connect = httpcore2.AnyIOBackend.connect_tcp

    async def lead(self: httpcore2.AnyIOBackend, host: str, port: int, *rest: Any) -> Any:
        taken.append((host, port))
        return await connect(self, "127.0.0.1", web.port, *rest)

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", lead)
    return taken


def names(*answers: Sequence[str]) -> Resolve:
    """A resolver that gives one answer after another, and the last one from then on."""
    left = list(answers)

    async def resolve(host: str, port: int) -> Sequence[str]:
        return left.pop(0) if left[1:] else left[0]

    return resolve


class Visitor:
    """Fetches with settings; the naps it takes between tries are written down, not slept."""

    def __init__(self, *, resolve: Resolve | None = None, **settings: Any) -> None:
        self.settings = WebSettings(**settings)
        self.resolve = resolve
        self.naps: list[float] = []

    def get(self, url: str, **given: Any) -> Response:
        return self.get_all(url, **given)[0]

    def get_all(self, *urls: str, at_once: bool = False, **given: Any) -> list[Response]:
        async def run() -> list[Response]:
            async with Fetcher(self.settings, sleep=self._nap, resolve=self.resolve) as fetcher:
                if at_once:
                    return await asyncio.gather(*(fetcher.get(url, **given) for url in urls))
                return [await fetcher.get(url, **given) for url in urls]

        return asyncio.run(run())

    async def _nap(self, seconds: float) -> None:
        self.naps.append(seconds)


def local(web: Site, **settings: Any) -> Visitor:
    """A visitor that may ask the site."""
    return Visitor(**{"allow_hosts": (web.host,), **settings})


def get(web: Site, path: str = "/", **settings: Any) -> Response:
    return local(web, **settings).get(web.url(path))


def public(**settings: Any) -> Visitor:
    """A visitor to whom every name is a public address."""
    return Visitor(resolve=names([PUBLIC]), **settings)


# URLs


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("example.com", "https://example.com/"),
        (" example.com/a b?q=ü ", "https://example.com/a%20b?q=%C3%BC"),
        ("//example.com/x", "https://example.com/x"),
        ("HTTP://EXAMPLE.com:80/A/../b#c", "http://example.com/b"),
        ("https://example.com:443", "https://example.com/"),
        ("http://example.com:443/", "http://example.com:443/"),
        ("example.com:8080/x", "https://example.com:8080/x"),
        ("localhost:8000", "https://localhost:8000/"),
        ("https://example.com./", "https://example.com/"),
        ("https://example.com?q", "https://example.com/?q"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://BÜCHER.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("http://[2606:4700:0:0::1111]/", "http://[2606:4700::1111]/"),
        ("http://[2606:4700::1111]:8080/", "http://[2606:4700::1111]:8080/"),
        ("https://a_b.example/", "https://a_b.example/"),
        ("https://example.com/a%2Fb", "https://example.com/a%2Fb"),
    ],
)
def test_a_url_has_one_spelling(url: str, expected: str) -> None:
    """A URL names one document."""
    assert normalise_url(url) == expected
    assert normalise_url(expected) == expected


SCHEMES = [
    "file:///etc/passwd",
    "file:/etc/passwd",
    "ftp://example.com/a",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "gopher://example.com/",
    "mailto:a@example.com",
    "ws://example.com/",
    "view-source:https://example.com/",
]
NO_URLS = [
    "",
    "http://",
    "http:",
    "http:///path",
    "http:example.com",
    "/etc/passwd",
    "./docs",
    "https://exa mple.com/",
    "https://example.com:0/",
    "https://example.com:65536/",
    "https://example.com:-1/",
    "https://example.com:http/",
    "https://a..b/",
    "https://" + "a" * 64 + ".com/",
    "https://" + "a." * 130 + "com/",
    "https://[::1/",
    "https://[example.com]/",
    "https://exam\tple.com/",
    "https://example.com/\x00x",
    "https://-\u0301.com/",
    "https://\ud800.com/\udc00",
    "x" * 100_000,
]


@pytest.mark.parametrize("url", SCHEMES + NO_URLS)
def test_what_is_no_web_address_is_refused(url: str) -> None:
    """BAD_INPUTS URLs: `file:`, `ftp:`, `data:` are refused, in words that can be shown."""
    with pytest.raises(Refused) as caught:
        normalise_url(url)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("url", SCHEMES)
def test_a_redirect_to_another_scheme_is_refused(web: Site, url: str) -> None:
    """BAD_INPUTS URLs: a redirect is held to the same rules."""
    web.redirect("/", url)
    with pytest.raises(Refused, match="redirected"):
        get(web)


@pytest.mark.parametrize(
    "url",
    [
        "https://user:secret@example.com/",
        "user:secret@example.com",
        "//user:secret@example.com/",
        "https://secret@example.com/",
        "https://example.com\\@secret@example.com/",
    ],
)
def test_credentials_are_refused_and_not_repeated(url: str) -> None:
    """Issue 6: credentials in URLs are refused; an error does not show them."""
    with pytest.raises(Refused) as caught:
        normalise_url(url)
    assert "secret" not in str(caught.value)


def test_a_redirect_with_credentials_is_refused(web: Site) -> None:
    """Issue 6: credentials in URLs are refused, on every hop."""
    web.redirect("/", f"http://user:secret@{web.host}/next")
    with pytest.raises(Refused, match="user name or password") as caught:
        get(web)
    assert "secret" not in str(caught.value)
    assert web.paths() == ["/"]


@given(st.text() | st.from_regex(r"(?:https?://|//)?[^/?#]{0,20}(?::\d{0,6})?(?:/.{0,20})?", fullmatch=True))
@example("https://[v1.a]/")
@example("0")
def test_any_text_is_a_url_with_one_spelling_or_refused(text: str) -> None:
    """BAD_INPUTS URLs: never another error."""
    try:
        url = normalise_url(text)
    except Refused:
        return
    assert url.isascii()
    assert normalise_url(url) == url


# Addresses

PRIVATE = """
    0.0.0.0 0.1.2.3 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 168.63.129.16
    169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1
    198.18.0.1 198.19.255.255 198.51.100.1 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1
    255.255.255.255 :: ::1 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:8.8.8.8 64:ff9b::a9fe:a9fe
    64:ff9b:1::a9fe:a9fe 100::1 2001::1 2001:0:7f00:1:: 2001:2::1 2001:10::1 2001:db8::1
    2002:7f00:1:: 2002:808:808::1 3fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fec0::1
    ff02::1
""".split()
PUBLICS = """
    1.1.1.1 8.8.8.8 100.63.255.255 100.128.0.1 128.0.0.1 168.63.129.17 169.253.255.255
    172.15.255.255 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.255 2001:200::1 2001:4860:4860::8888
    2606:4700::1111 2a00:1450::1
""".split()


def in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(roads: list[tuple[str, int]], address: str) -> None:
    """BAD_INPUTS URLs: loopback, private, link-local, metadata, CGNAT, multicast, mapped and NAT64."""
    with pytest.raises(Refused, match="allow_hosts"):
        Visitor().get(f"http://{in_url(address)}/")
    assert roads == []


@pytest.mark.parametrize("address", PRIVATE)
def test_a_redirect_to_an_address_that_is_not_public_is_refused(
    web: Site, roads: list[tuple[str, int]], address: str
) -> None:
    """BAD_INPUTS URLs: redirect to such a host: that hop is refused."""
    web.redirect("/", f"http://{in_url(address)}/secret")
    with pytest.raises(Refused, match="secret"):
        public().get(DOCS)
    assert roads == [(PUBLIC, 80)]
    assert web.paths() == ["/"]


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_with_one_address_that_is_not_public_is_refused(
    roads: list[tuple[str, int]], address: str
) -> None:
    """BAD_INPUTS URLs: every address of a name is checked."""
    for answer in ([address], [PUBLIC, address], [address, PUBLIC]):
        with pytest.raises(Refused, match="not a public address"):
            Visitor(resolve=names(answer)).get(DOCS)
    assert roads == []


def test_a_redirect_to_a_name_that_is_not_public_is_refused(web: Site, roads: list[tuple[str, int]]) -> None:
    """BAD_INPUTS URLs: names are checked on every hop."""
    web.redirect("/", "http://inner.example/secret")
    with pytest.raises(Refused, match=r"at 10\.0\.0\.7, .*redirected"):
        Visitor(resolve=names([PUBLIC], ["10.0.0.7"])).get(DOCS)
    assert roads == [(PUBLIC, 80)]


@pytest.mark.parametrize("address", PUBLICS)
def test_a_public_address_is_asked(web: Site, roads: list[tuple[str, int]], address: str) -> None:
    """BAD_INPUTS URLs: what is next to a closed range is open."""
    web.page("/")
    assert Visitor().get(f"http://{in_url(address)}/").content == b"# A\n"
    assert roads == [(address, 80)]
    assert web.asked[0].headers["host"] == in_url(address)


SPELLINGS = """
    2130706433 017700000001 0x7f000001 0x7f.1 0x7F.0.0.1 0177.0.0.1 00000177.0.0.1 127.1 127.0.1
    127.0.0.1. 127.0.0.0x1 0x 256.256.256.256 %31%32%37.0.0.1 127%2e0%2e0%2e1
    127.0.0.1%00.example.com localhost%2f.example.com 127。0。0。1 １２７.0.0.1 ①②⑦.⓪.⓪.①
    [0:0:0:0:0:0:0:1] [::ffff:7f00:1] [::1%25lo] [fe80::1%25eth0] localhost LOCALHOST.
""".split()


@pytest.mark.parametrize("host", SPELLINGS)
def test_no_spelling_of_loopback_gets_through(web: Site, roads: list[tuple[str, int]], host: str) -> None:
    """BAD_INPUTS URLs: decimal and octal hosts, and other ways to write one."""
    web.redirect("/", f"http://{host}/secret")
    with pytest.raises(Refused):
        Visitor().get(f"http://{host}/")
    with pytest.raises(Refused):
        Visitor(resolve=names([PUBLIC], ["127.0.0.1"])).get(DOCS)
    assert roads == [(PUBLIC, 80)]


@given(st.ip_addresses() | st.sampled_from(PRIVATE + PUBLICS).map(ipaddress.ip_address))
def test_nothing_is_public_that_python_calls_private(address: ipaddress.IPv4Address) -> None:
    """BAD_INPUTS URLs: our list is at least as strict as the standard library's."""
    if is_public(str(address)):
        assert address.is_global
        assert not address.is_multicast


def test_a_name_that_changes_is_asked_where_it_was_checked(web: Site, roads: list[tuple[str, int]]) -> None:
    """BAD_INPUTS URLs: a name that resolves differently the second time."""
    web.page("/", connection="close")
    visitor = Visitor(resolve=names([PUBLIC], ["127.0.0.1"]))
    assert visitor.get(DOCS).content == b"# A\n"
    assert roads == [(PUBLIC, 80)]
    with pytest.raises(Refused, match=r"127\.0\.0\.1"):  # the next connection looks it up again
        visitor.get(DOCS)
    assert roads == [(PUBLIC, 80)]


def test_a_name_is_looked_up_once_for_a_connection(web: Site, roads: list[tuple[str, int]]) -> None:
    """DESIGN §8: the guard connects to the address it checked; a kept connection needs no new one."""
    web.page("/")
    web.redirect("/moved", "/")
    web.page("/same", b"", status=304)
    visitor = Visitor(resolve=names([PUBLIC], ["127.0.0.1"]))
    visitor.get_all(DOCS, f"{DOCS}/moved", f"{DOCS}/same", DOCS, etag="x")
    assert roads == [(PUBLIC, 80)]
    assert web.paths() == ["/", "/moved", "/", "/same", "/"]


def test_the_next_address_is_tried_when_one_does_not_answer(web: Site) -> None:
    """DESIGN §8: a name may have several addresses."""
    web.page("/")
    for found in (["127.0.0.2", "127.0.0.1"], ["127.0.0.1", "127.0.0.2"]):
        visitor = Visitor(resolve=names(found), allow_hosts=("docs.example",))
        assert visitor.get(f"{DOCS}:{web.port}").status == 200
        assert visitor.naps == []
    assert web.asked[0].headers["host"] == f"docs.example:{web.port}"


def test_tls_is_told_the_name_and_not_the_address(
    roads: list[tuple[str, int]], web: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6: connect to the checked address with the right TLS name."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        monkeypatch.setattr(web, "port", listener.getsockname()[1])
        hello: list[bytes] = []

        def listen() -> None:
            connection, _ = listener.accept()
            with connection:
                hello.append(connection.recv(4096))

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(TransientError):
            public(retries=0).get("https://docs.example/")
        thread.join()
    assert b"docs.example" in hello[0]
    assert roads == [(PUBLIC, 443)]


def test_certificates_are_checked_against_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 6: what httpcore is given for TLS."""
    given: list[tuple[ssl.SSLContext, str | None]] = []

    class Line(httpcore2.AsyncNetworkStream):
        async def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,
        ) -> httpcore2.AsyncNetworkStream:
            given.append((ssl_context, server_hostname))
            raise httpcore2.ConnectError("enough was seen")

    async def connect(*_: Any, **__: Any) -> httpcore2.AsyncNetworkStream:
        return Line()

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect)
    with pytest.raises(TransientError, match="enough was seen"):
        public(retries=0).get("https://docs.example/")
    ((context, name),) = given
    assert name == "docs.example"
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


# Ports and allowed hosts


@pytest.mark.parametrize("port", [21, 22, 25, 81, 6379, 8080, 65535])
def test_other_ports_are_refused(web: Site, roads: list[tuple[str, int]], port: int) -> None:
    """Issue 6: ports 80 and 443, on every hop."""
    web.redirect("/", f"http://docs.example:{port}/")
    for url in (f"http://docs.example:{port}/", DOCS):
        with pytest.raises(Refused, match=f"port {port}"):
            public().get(url)
    assert roads == [(PUBLIC, 80)]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", " LocalHost. "])
def test_an_allowed_host_is_open_on_every_port(web: Site, host: str) -> None:
    """Issue 6: `allow_hosts` opens named hosts."""
    web.page("/")
    assert Visitor(allow_hosts=(host,)).get(f"http://{host.strip()}:{web.port}/").status == 200


def test_an_allowed_host_with_a_port_is_open_on_that_port_only(web: Site) -> None:
    """Issue 6: "wiki.corp:8080" opens that port only."""
    web.page("/")
    web.redirect("/away", f"http://127.0.0.1:{web.port + 1}/")
    assert get(web).status == 200
    for url in (web.url("/away"), "http://127.0.0.1/", "http://127.0.0.1:443/"):
        with pytest.raises(Refused):
            local(web).get(url)


def test_an_allowed_name_does_not_open_its_address(web: Site) -> None:
    """Issue 6: allowed by name is allowed for that name only."""
    web.redirect("/", web.url("/secret"))
    with pytest.raises(Refused, match="redirected"):
        Visitor(allow_hosts=("localhost",)).get(f"http://localhost:{web.port}/")
    assert web.paths() == ["/"]


@pytest.mark.parametrize("entry", ["::1", "[::1]", "[::1]:80", "[0:0::1]:80"])
def test_an_allowed_host_may_be_an_ipv6_address(web: Site, roads: list[tuple[str, int]], entry: str) -> None:
    """Issue 6: `allow_hosts` takes addresses."""
    web.page("/")
    Visitor(allow_hosts=(entry,)).get("http://[::1]/")
    assert roads == [("::1", 80)]


@pytest.mark.parametrize("entry", ["", "a b", "a/b", "a#b", "http://x/y", "127.1", "a:b", "user@host"])
def test_a_host_that_cannot_be_allowed_is_named(entry: str) -> None:
    """BAD_INPUTS settings: a wrong value is told of."""
    with pytest.raises(SettingError, match=r"web\.allow_hosts"):
        Visitor(allow_hosts=(entry,)).get("https://example.com")


@pytest.mark.parametrize(
    "wrong", [{"max_bytes": 0}, {"deadline": 0}, {"redirects": -1}, {"retries": 11}, {"per_host": 0}]
)
def test_a_setting_out_of_range_is_named(wrong: dict[str, Any]) -> None:
    """BAD_INPUTS settings: an error that names the range."""
    with pytest.raises(SettingError, match=next(iter(wrong))):
        WebSettings(**wrong)


# Redirects


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_are_followed(web: Site, status: int) -> None:
    """Issue 6: a page keeps the URL that was asked and the one it came from."""
    web.redirect("/old", "../new/%C3%BC#part", status)
    web.page("/new/%C3%BC")
    page = local(web).get(web.url("/old?x=1#top"))
    assert (page.url, page.final_url) == (web.url("/old?x=1"), web.url("/new/%C3%BC"))


def test_a_location_in_utf8_is_followed(web: Site) -> None:
    """Issue 6: Location is read as servers write it."""
    web.redirect("/", "/\u00c3\u00bc")  # goes out as Latin-1: the two bytes of ü
    web.page("/%C3%BC")
    assert get(web).final_url == web.url("/%C3%BC")


def test_five_redirects_are_followed_and_a_sixth_is_not(web: Site) -> None:
    """BAD_INPUTS URLs: redirect loop: 5 hops."""
    for number in range(6):
        web.redirect(f"/{number}", f"/{number + 1}")
    web.page("/6")
    assert local(web).get(web.url("/1")).final_url == web.url("/6")
    web.asked.clear()
    with pytest.raises(Refused, match=r"web\.redirects = 5 .*/0 → .*/5\)"):
        local(web).get(web.url("/0"))
    assert web.paths() == [f"/{number}" for number in range(6)]


def test_a_redirect_loop_ends(web: Site) -> None:
    """BAD_INPUTS URLs: redirect loop: 5 hops."""
    web.redirect("/", "/")
    visitor = local(web)
    with pytest.raises(Refused, match="redirected"):
        visitor.get(web.url())
    assert len(web.asked) == 6
    assert visitor.naps == []


@pytest.mark.parametrize("location", ["http://[", "http://[::1", "http://", "//", "http://exa mple/"])
def test_a_redirect_to_nowhere_is_refused(web: Site, location: str) -> None:
    """BAD_INPUTS URLs: a redirect is held to the same rules."""
    web.redirect("/", location)
    with pytest.raises(Refused):
        get(web)


# Failures and retries


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_a_page_that_is_not_there_is_not_tried_again(web: Site, status: int) -> None:
    """BAD_INPUTS URLs: 404, 401, 403: error, no retry."""
    web.page("/", status=status)
    visitor = local(web)
    with pytest.raises(NotFound, match=str(status)) as caught:
        visitor.get(web.url())
    assert caught.value.status == status
    assert caught.value.source == web.url()
    assert (len(web.asked), visitor.naps) == (1, [])


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 520])
def test_a_failing_server_is_tried_again_and_then_given_up(web: Site, status: int) -> None:
    """A server that fails after all retries is a TransientError."""
    web.page("/", status=status)
    visitor = local(web)
    with pytest.raises(TransientError, match=str(status)):
        visitor.get(web.url())
    assert (len(web.asked), visitor.naps) == (4, [1, 2, 4])


def test_a_server_that_recovers_is_read(web: Site) -> None:
    """BAD_INPUTS URLs: 5xx and resets are retried."""
    web.pages("/", reply(500), reset, reply(200, b"fine"))
    visitor = local(web)
    assert visitor.get(web.url()).content == b"fine"
    assert visitor.naps == [1, 2]


@pytest.mark.parametrize("failure", [reset, cut_off], ids=["reset", "cut off"])
def test_a_broken_connection_is_a_transient_error(web: Site, failure: Any) -> None:
    """Network failure is a TransientError."""
    web.route("/", failure)
    visitor = local(web)
    with pytest.raises(TransientError):
        visitor.get(web.url())
    assert (len(web.asked), visitor.naps) == (4, [1, 2, 4])


def test_a_port_where_nobody_listens_is_a_transient_error() -> None:
    """Network failure is a TransientError."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    visitor = Visitor(allow_hosts=("127.0.0.1",), retries=2)
    with pytest.raises(TransientError):
        visitor.get(f"http://127.0.0.1:{port}/")
    assert visitor.naps == [1, 2]


def test_a_name_that_does_not_exist_is_tried_once_more() -> None:
    """A failing lookup is a TransientError."""

    async def fail(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    for resolve in (fail, names([])):
        visitor = Visitor(resolve=resolve)
        with pytest.raises(TransientError, match=r"docs\.example"):
            visitor.get(DOCS)
        assert visitor.naps == [1]


def test_a_server_is_left_alone_for_as_long_as_it_asks(web: Site) -> None:
    """BAD_INPUTS URLs: 429 is retried with Retry-After."""
    in_half_a_minute = formatdate(time.time() + 30, usegmt=True)
    yesterday = formatdate(time.time() - 86_400, usegmt=True)
    web.pages(
        "/",
        reply(429, retry_after="7"),
        reply(503, retry_after=in_half_a_minute),
        reply(429, retry_after=yesterday),
        reply(200),
    )
    visitor = local(web)
    assert visitor.get(web.url()).status == 200
    assert visitor.naps[::2] == [7, 0]
    assert 28 < visitor.naps[1] <= 30


@pytest.mark.parametrize("asked", ["soon", "-5", "1e9", "٣", "", "9" * 5000, "Mon, 99 Foo 2026 00:00:00 GMT"])
def test_a_retry_after_that_says_nothing_is_left_out(web: Site, asked: str) -> None:
    """BAD_INPUTS URLs: backoff where Retry-After makes no sense."""
    web.pages("/", reply(429, retry_after=asked.encode().decode("latin-1")), reply(200))
    visitor = local(web)
    visitor.get(web.url())
    assert visitor.naps == [1]


def test_a_server_that_asks_for_an_hour_is_given_up_at_once(web: Site) -> None:
    """BAD_INPUTS URLs: the error says when to try again."""
    web.page("/", status=429, retry_after="3600")
    visitor = local(web)
    with pytest.raises(TransientError, match="Try again in 3,600 s"):
        visitor.get(web.url())
    assert (len(web.asked), visitor.naps) == (1, [])


@pytest.mark.parametrize("status", [201, 204, 206, 300, 302, 304, 305])
def test_an_answer_that_is_no_page_is_an_error(web: Site, status: int) -> None:
    """D rulings: HTTP errors are errors, and so is a 304 that was not asked for."""
    web.page("/", b"", status=status)
    with pytest.raises(TransientError, match=str(status)):
        get(web)
    assert len(web.asked) == 1


def test_a_slow_drip_ends_at_the_deadline(web: Site) -> None:
    """BAD_INPUTS URLs: slow drip: total deadline."""
    web.route("/", drip)
    visitor = local(web, deadline=0.4)
    began = time.monotonic()
    with pytest.raises(TransientError, match=r"web\.deadline = 0\.4 s"):
        visitor.get(web.url())
    assert 0.3 < time.monotonic() - began < 2
    assert (len(web.asked), visitor.naps) == (1, [])


def test_the_deadline_covers_redirects_and_retries(web: Site) -> None:
    """BAD_INPUTS URLs: total deadline."""

    def slow(handler: Handler) -> None:
        time.sleep(0.15)
        handler.answer(302, b"", {"location": "/"})

    web.route("/", slow)
    with pytest.raises(TransientError, match=r"web\.deadline"):
        get(web, deadline=0.5, retries=0)
    assert 2 <= len(web.asked) <= 4


def test_a_silent_server_is_asked_again(web: Site) -> None:
    """BAD_INPUTS URLs: read timeouts are retried."""
    web.pages("/", silent(0.6), reply(200, b"fine"))
    visitor = local(web, deadline=0.8, retries=1)
    assert visitor.get(web.url()).content == b"fine"
    assert visitor.naps == [1]


def test_a_name_that_takes_too_long_ends_at_the_deadline() -> None:
    """BAD_INPUTS URLs: the deadline covers the lookup."""

    async def sleepy(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(5)
        return [PUBLIC]

    with pytest.raises(TransientError, match=r"web\.deadline"):
        Visitor(resolve=sleepy, deadline=0.1).get(DOCS)


# Size


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_page_at_the_cap_is_read_and_one_over_it_is_not(web: Site, packed: bool) -> None:
    """BAD_INPUTS URLs: over the size cap: clear error with the cap's name."""
    for size, path in ((1000, "/fits"), (1001, "/over")):
        body = b"a" * size
        if packed:
            web.page(path, gzip.compress(body, mtime=0), content_encoding="gzip")
        else:
            web.page(path, body)
    assert len(get(web, "/fits", max_bytes=1000).content) == 1000
    with pytest.raises(TooLarge, match=r"web\.max_bytes = 1,000"):
        get(web, "/over", max_bytes=1000)


def test_a_length_over_the_cap_is_refused_before_reading(web: Site) -> None:
    """BAD_INPUTS URLs: Content-Length over the cap is refused before reading."""

    def promise(handler: Handler) -> None:
        handler.answer(200, b"", {"content_length": "1001"})
        time.sleep(3)

    web.route("/", promise)
    began = time.monotonic()
    with pytest.raises(TooLarge):
        get(web, max_bytes=1000)
    assert time.monotonic() - began < 1


def test_a_page_of_unknown_length_stops_at_the_cap(web: Site) -> None:
    """BAD_INPUTS URLs: the cap is on what comes, not on what is promised."""

    def endless(handler: Handler) -> None:
        handler.send_response(200)
        handler.end_headers()
        handler.close_connection = True
        while True:
            handler.wfile.write(bytes(65_536))

    web.route("/", endless)
    with pytest.raises(TooLarge):
        get(web, max_bytes=10 * MIB)


def test_a_gzip_bomb_stops_at_the_cap_with_flat_memory(web: Site) -> None:
    """BAD_INPUTS URLs: gzip bomb: stopped at the cap on decoded bytes, memory flat."""
    web.page("/", bomb(1024), content_encoding="gzip")  # 1 GiB of zeros
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        with pytest.raises(TooLarge):
            get(web, max_bytes=10 * MIB)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < 64 * MIB


def test_an_endless_redirect_or_unchanged_page_is_not_read(web: Site) -> None:
    """BAD_INPUTS URLs: what follows a redirect is not content."""

    def endless(handler: Handler) -> None:
        handler.send_response(302)
        handler.send_header("location", "/next")
        handler.end_headers()
        handler.close_connection = True
        while True:
            handler.wfile.write(bytes(65_536))

    web.route("/", endless)
    web.page("/next")
    assert get(web, deadline=5).final_url == web.url("/next")


def raw_deflate(body: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return squeeze.compress(body) + squeeze.flush()


def two_members(body: bytes) -> bytes:
    return gzip.compress(body[:7], mtime=0) + gzip.compress(body[7:])


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "GZip ": gzip.compress,
    "x-gzip": two_members,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
    "identity": bytes,
    "": bytes,
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_compressed_pages_are_read(web: Site, encoding: str) -> None:
    """DESIGN §1: the source bytes are returned exactly."""
    body = b"# A\n" * 1_000_000
    web.page("/", PACKERS[encoding](body), content_encoding=encoding)
    assert get(web).content == body


@given(
    body=st.binary(max_size=300) | st.binary(min_size=1, max_size=3).map(lambda some: some * 400_000),
    packer=st.sampled_from([gzip.compress, two_members, zlib.compress, raw_deflate]),
    cuts=st.lists(st.integers(0, 400), max_size=5),
    padding=st.sampled_from([b"", b"\0" * 8]),
)
def test_compressed_pages_may_come_in_any_pieces(
    body: bytes, packer: Callable[[bytes], bytes], cuts: list[int], padding: bytes
) -> None:
    """DESIGN §1: the source bytes are returned exactly, however they come, and half a page is not one."""
    encoding = "deflate" if packer in (zlib.compress, raw_deflate) else "gzip"
    packed = packer(body) + padding
    unpacker = Decompressor(encoding)
    edges = sorted([0, *cuts, len(packed)])
    found = [p for a, b in itertools.pairwise(edges) for p in unpacker.feed(packed[a:b])]
    assert b"".join(found) == body
    assert unpacker.is_whole
    assert all(len(piece) <= MIB for piece in found)
    half = Decompressor(encoding)
    list(half.feed(packer(body)[:-1]))
    assert not half.is_whole


@pytest.mark.parametrize("encoding", ["br", "zstd", "compress", "gzip, gzip", "x-made-up"])
def test_a_compression_that_was_not_asked_for_is_named(web: Site, encoding: str) -> None:
    """Issue 6: it is told of, not kept as noise."""
    web.page("/", b"\x0b\x02\x80hello\x03", content_encoding=encoding)
    with pytest.raises(NotText, match=encoding):
        get(web)
    assert web.asked[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    "body", [b"no gzip", gzip.compress(b"a" * 1000, mtime=0)[:-5], gzip.compress(b"a", mtime=0)[:-1] + b"x"]
)
def test_broken_compression_is_tried_again(web: Site, body: bytes) -> None:
    """Nothing fails silently; what is damaged on the way may come whole the next time."""
    web.pages("/", reply(200, body, content_encoding="gzip"), reply(200, b"fine"))
    visitor = local(web)
    assert visitor.get(web.url()).content == b"fine"
    assert visitor.naps == [1]


# What is sent


def test_nothing_is_sent_but_what_is_needed(web: Site) -> None:
    """Issue 6: no cookies, no Referer, a user agent that says who asks."""
    web.redirect("/", "/next")
    web.page("/next")
    get(web)
    for request in web.asked:
        assert request.headers.keys() == {"host", "user-agent", "accept", "accept-encoding"}
        assert request.headers["accept"].startswith("text/markdown, text/html;q=0.8")
        assert request.headers["user-agent"].startswith("quire/")
        assert request.headers["host"] == web.host


def test_cookies_are_not_sent_back(web: Site) -> None:
    """Issue 6: no cookies."""
    web.page("/", set_cookie="a=1; Path=/")
    web.page("/moved", status=302, location="/", set_cookie="b=2; Path=/")
    local(web).get_all(web.url(), web.url("/moved"), web.url())
    assert len(web.asked) == 4
    assert not any("cookie" in request.headers for request in web.asked)


def test_the_environment_names_neither_proxies_nor_passwords(
    web: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 6: no environment proxies unless asked."""
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n", "utf-8")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    web.page("/")
    with site() as other:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, other.url())
        assert get(web).status == 200
        assert other.asked == []
    assert "authorization" not in web.asked[0].headers


def test_a_proxy_that_is_named_is_used(web: Site) -> None:
    """Issue 6: a proxy only where the configuration names one; it need not be public."""
    for url in ("http://docs.example:80/a", "http://unknown.example:80/a"):
        web.page(url)
    proxy = f"http://me:secret@{web.host}"
    assert public(proxy=proxy).get(f"{DOCS}/a").content == b"# A\n"
    assert Visitor(resolve=names([]), proxy=proxy).get("http://unknown.example/a").status == 200
    assert web.asked[0].headers["host"] == "docs.example"
    assert web.asked[0].headers["proxy-authorization"].startswith("Basic ")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "inner.example", "2130706433"])
def test_a_proxy_is_not_a_way_around_the_guard(web: Site, host: str) -> None:
    """BAD_INPUTS URLs: what is refused directly is refused through a proxy."""
    with pytest.raises(Refused):
        Visitor(resolve=names(["10.0.0.7"]), proxy=web.url()).get(f"http://{host}/")
    assert web.asked == []


@pytest.mark.parametrize(
    "proxy", ["ftp://example.com", "socks5://example.com", "example.com", "http://a:b@:x/"]
)
def test_a_proxy_that_is_none_is_named(proxy: str) -> None:
    """BAD_INPUTS settings: a wrong value is told of."""
    with pytest.raises(SettingError, match=r"web\.proxy"):
        Visitor(proxy=proxy).get("https://example.com")


def test_a_host_gets_a_few_requests_at_once(web: Site) -> None:
    """Issue 6: per-host concurrency."""

    def slow(handler: Handler) -> None:
        time.sleep(0.05)
        handler.answer(200, b"fine", {})

    web.route("/", slow)
    assert len(local(web).get_all(*[web.url()] * 12, at_once=True)) == 12
    assert web.most_at_once == 4


def test_waiting_for_a_turn_does_not_count_against_the_deadline(web: Site) -> None:
    """Issue 6: the deadline is for one page, not for the queue before it."""
    web.route("/", silent(0.2))
    visitor = local(web, per_host=1, deadline=0.6, retries=0)
    assert len(visitor.get_all(*[web.url()] * 5, at_once=True)) == 5
    assert web.most_at_once == 1


# Conditional GET


def test_a_page_that_is_as_it_was_is_not_sent_again(web: Site) -> None:
    """A check covers URLs by conditional GET."""
    tag, when = '"v1-\u00e9"', "Wed, 21 Oct 2026 07:28:00 GMT"
    web.pages("/", reply(200, b"# A\n", etag=tag, last_modified=when), reply(304))
    visitor = local(web)
    first = visitor.get(web.url())
    assert (first.etag, first.last_modified) == (tag, when)
    again = visitor.get(web.url(), etag=first.etag, last_modified=first.last_modified)
    assert (again.status, again.content) == (304, b"")
    assert (again.etag, again.last_modified) == (tag, when)
    assert web.asked[1].headers["if-none-match"] == tag
    assert web.asked[1].headers["if-modified-since"] == when


def test_a_page_that_changed_is_sent_again(web: Site) -> None:
    """Changed content replaces what was."""
    web.page("/", b"new", etag='"v2"')
    page = local(web).get(web.url(), etag='"v1"')
    assert (page.status, page.content, page.etag, page.last_modified) == (200, b"new", '"v2"', None)


def test_the_accept_header_can_be_chosen(web: Site) -> None:
    """Issue 6: the crawler asks for robots.txt as text."""
    web.page("/")
    local(web).get(web.url(), accept="text/plain")
    assert web.asked[0].headers["accept"] == "text/plain"


# Kinds

HTML = b"<!DOCTYPE html><html><body><p>A</p></body></html>"


@pytest.mark.parametrize(
    ("path", "media", "body", "kind"),
    [
        ("/a", "text/markdown", b"# A\n", "markdown"),
        ("/a", "text/x-markdown; charset=utf-8", b"# A\n", "markdown"),
        ("/a", "TEXT/Markdown", b"# A\n", "markdown"),
        ("/a", "text/markdown", HTML, "html"),
        ("/a.md", "text/plain", HTML, "html"),
        ("/a.md", "text/markdown", b"\xef\xbb\xbf \n<!-- made\nby --> <HTML lang=en>", "html"),
        ("/a.md", "text/markdown", b"<?xml version='1.0'?>\n<!doctype HTML>", "html"),
        ("/a.md", "text/markdown", "<html>é</html>".encode("utf-16"), "html"),
        ("/a", "text/plain", b"<head><title>A</title>", "html"),
        ("/a", "text/plain", b"<body>", "html"),
        ("/a", "application/xml", b"<?xml version='1.0'?><html xmlns='x'>", "html"),
        ("/a.md", "text/markdown", b"<header>not a page</header>", "markdown"),
        ("/a.md", "text/markdown", b"Write `<html>` first", "markdown"),
        ("/a.md", "text/markdown", b"<!-- <html> -->\n# A\n", "markdown"),
        ("/a.md", "text/plain", b"# A\n", "markdown"),
        ("/A.MD", "text/plain", b"# A\n", "markdown"),
        ("/a.markdown", "text/plain", b"# A\n", "markdown"),
        ("/a%2emd", "text/plain", b"# A\n", "markdown"),
        ("/llms.txt", "text/plain", b"# A\n", "markdown"),
        ("/docs/llms-full.txt", "text/plain", b"# A\n", "markdown"),
        ("/notllms.txt", "text/plain", b"# A\n", "text"),
        ("/a.txt", "text/plain", b"# A\n", "text"),
        ("/a.html", "text/plain", b"plain", "text"),
        ("/a", "text/html", b"<p>A", "html"),
        ("/a", "application/xhtml+xml", b"<p>A</p>", "html"),
        ("/a.md", "application/octet-stream", b"# A\n", "markdown"),
        ("/a.htm", "application/octet-stream", b"<p>A", "html"),
        ("/a.html", "", b"<p>A", "html"),
        ("/a", "", b"plain", "text"),
        ("/a", "", b"", "text"),
        ("/a", "text/css", b"a {}", "text"),
    ],
)
def test_a_page_is_what_it_looks_like(web: Site, path: str, media: str, body: bytes, kind: str) -> None:
    """BAD_INPUTS URLs: HTML served as text/markdown: sniffed."""
    web.page(path, body, content_type=media)
    page = get(web, path)
    assert (page.kind, page.content) == (kind, body)


@pytest.mark.parametrize(
    ("media", "body"),
    [
        ("image/png", b"\x89PNG"),
        ("image/svg+xml", b"<svg/>"),
        ("audio/mpeg", b"ID3"),
        ("video/mp4", b"mp4"),
        ("font/woff2", b"wOF2"),
        ("application/zip", b"PK"),
        ("application/gzip", b"\x1f\x8b"),
        ("application/json", b"{}"),
        ("application/ld+json; charset=utf-8", b"{}"),
        ("application/xml", b"<?xml version='1.0'?><a/>"),
        ("text/xml", b"<a/>"),
        ("application/rss+xml", b"<rss/>"),
    ],
)
def test_what_is_no_text_to_read_is_named(web: Site, media: str, body: bytes) -> None:
    """BAD_INPUTS files: binary is skipped with the reason, also from the web."""
    web.page("/a.md", body, content_type=media)
    with pytest.raises(NotText, match=media.partition(";")[0].replace("+", r"\+")):
        get(web, "/a.md")
    assert len(web.asked) == 1


@pytest.mark.parametrize("media", ["text/markdown", "text/html", "application/octet-stream", ""])
def test_nul_bytes_are_no_text(web: Site, media: str) -> None:
    """BAD_INPUTS files: NUL bytes or binary named `.md`: skipped with the reason."""
    web.page("/a.md", b"a" * 8000 + b"\0", content_type=media)
    with pytest.raises(NotText, match="NUL"):
        get(web, "/a.md")


@pytest.mark.parametrize(
    "body", [b" " * 8192, b"<!--" * 2048, b"<!---->" * 1200, b"<?xml" * 1600, b"\n<" * 4096]
)
def test_sniffing_takes_no_time(web: Site, body: bytes) -> None:
    """BAD_INPUTS files: linear time, whatever the bytes."""
    web.page("/", body)
    began = time.monotonic()
    assert get(web).kind == "text"
    assert time.monotonic() - began < 1


# Charsets

META = '<!doctype html><meta charset="{}"><p>Стол é</p>'
XML = '<?xml version="1.0" encoding="{}"?><html><p>Стол é</p></html>'
GUESSED = "its encoding was guessed to be windows-1252"


@pytest.mark.parametrize(
    ("media", "body", "charset", "warning"),
    [
        ("text/plain", "é".encode("utf-8-sig"), "utf-8-sig", ""),
        ("text/plain; charset=koi8-r", "é".encode("utf-8-sig"), "utf-8-sig", ""),
        ("text/plain", "é".encode("utf-16"), "utf-16", ""),
        ("text/plain", b"\xfe\xff" + "é".encode("utf-16-be"), "utf-16", ""),
        ("text/plain; charset=utf-16le", "é and more".encode("utf-16-le"), "utf-16-le", ""),
        ("text/plain; charset=koi8-r", "Стол".encode("koi8-r"), "koi8-r", ""),
        ('text/plain; Charset = "KOI8-R"; x=y', "Стол".encode("koi8-r"), "koi8-r", ""),
        (
            "text/html; charset=koi8-r",
            META.format("utf-8").replace("é", "").encode("koi8-r"),
            "koi8-r",
            "",
        ),
        ("text/plain; charset=iso-8859-1", "“é”".encode("cp1252"), "windows-1252", ""),
        ("text/plain; charset=shift_jis", "①机".encode("cp932"), "cp932", ""),
        ("text/plain; charset=x-unknown", "é".encode(), "utf-8", ""),
        ("text/plain; charset=x-unknown", "é".encode("cp1252"), "windows-1252", GUESSED),
        ("text/html", META.format("koi8-r").replace("é", "").encode("koi8-r"), "koi8-r", ""),
        (
            "text/html; charset=x-unknown",
            META.format("koi8-r").replace("é", "").encode("koi8-r"),
            "koi8-r",
            "",
        ),
        (
            "text/html",
            b'<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">\xc1',
            "koi8-r",
            "",
        ),
        ("text/html", META.format("utf-16").encode(), "utf-8", "it declares UTF-16, but is UTF-8"),
        ("text/html", XML.format("utf-16").encode(), "utf-8", "it declares UTF-16, but is UTF-8"),
        ("text/html", XML.format("koi8-r").replace("é", "").encode("koi8-r"), "koi8-r", ""),
        ("text/html; charset=utf-16", META.encode(), "utf-8", "it declares UTF-16, but is UTF-8"),
        (
            "text/plain; charset=utf-16le",
            "é and more".encode(),
            "utf-8",
            "it declares UTF-16-LE, but is UTF-8",
        ),
        ("text/plain; charset=utf-32", b"plain", "utf-8", "it declares UTF-32, but is UTF-8"),
        ("text/html", META.format("x-unknown").encode(), "utf-8", ""),
        ("text/html", b"<html>" + b" " * 1024 + META.format("koi8-r").encode(), "utf-8", ""),
        ("text/markdown", '# A\n\n    <meta charset="koi8-r">é'.encode(), "utf-8", ""),
        ("text/plain", "é 机".encode(), "utf-8", ""),
        ("text/plain", b"", "utf-8", ""),
        ("text/plain", "naïve “é”".encode("cp1252"), "windows-1252", GUESSED),
        ("text/html", "<p>naïve “é”".encode("cp1252"), "windows-1252", GUESSED),
    ],
)
def test_the_charset_of_a_page(web: Site, media: str, body: bytes, charset: str, warning: str) -> None:
    """Issue 6: charset by BOM, header, meta, UTF-8, then a guess that is recorded."""
    web.page("/", body, content_type=media)
    page = get(web)
    assert (page.charset, page.warning) == (charset, warning)
    assert "\ufffd" not in page.content.decode(page.charset)


@pytest.mark.parametrize(
    "name",
    [
        "base64",
        "hex",
        "zip",
        "rot13",
        "idna",
        "punycode",
        "unicode_escape",
        "undefined",
        "utf-7",
        "é",
        "..",
        "a" * 999,
    ],
)
def test_a_name_that_is_no_charset_is_passed_over(web: Site, name: str) -> None:
    """Issue 6: an unknown charset goes on to the next rule."""
    web.page("/header", b"\\d +AGE-", content_type=f"text/plain; charset={name}")
    web.page("/meta", META.format(name).encode(), content_type="text/html")
    for path in ("/header", "/meta"):
        assert (get(web, path).charset, get(web, path).warning) == ("utf-8", "")


@given(
    body=st.binary(max_size=64),
    name=st.text(max_size=12),
    start=st.sampled_from([b"", b"<html>", b"\xff\xfe"]),
)
def test_any_content_can_be_read_or_is_refused(body: bytes, name: str, start: bytes) -> None:
    """BAD_INPUTS files: invalid bytes are replaced, never an error of Python's."""
    content = start + f'<meta charset="{name}">'.encode("utf-8", "replace") + body
    with site() as web:
        web.page("/", content)
        try:
            page = get(web)
        except SourceError:
            return
    assert page.content == content
    assert isinstance(page.content.decode(page.charset, "replace"), str)


# Links


@pytest.mark.parametrize(
    ("header", "links"),
    [
        ('<a.md>; rel="alternate"; type="text/markdown"', ["/docs/a.md"]),
        ("</b.md>;rel=alternate;type=text/markdown", ["/b.md"]),
        (
            '</b.md> ; TYPE="Text/Markdown; charset=utf-8" ; title="a, b; <c>" ; REL="next Alternate"',
            ["/b.md"],
        ),
        (
            '</a>; rel=next, </b.md>; rel=alternate; type="text/markdown", <c.md>; type=text/markdown',
            ["/b.md"],
        ),
        (
            "<a.md>; rel=alternate; type=text/markdown, <b.md>; rel=alternate; type=text/markdown",
            ["/docs/a.md", "/docs/b.md"],
        ),
        ("<a.rss>; rel=alternate; type=application/rss+xml", []),
        ("<a.md>; rel=alternates; type=text/markdown", []),
        ("<file:///etc/passwd>; rel=alternate; type=text/markdown", []),
        ("<http://[>; rel=alternate; type=text/markdown", []),
        ("<a.md; rel=alternate; type=text/markdown", []),
        ("", []),
        ("<" * 5000, []),
        ("<a>" + ";a" * 5000 + ";", []),
        ("<a>" + ' ; a="' * 5000, []),
    ],
)
def test_a_page_says_where_it_is_markdown(web: Site, header: str, links: list[str]) -> None:
    """Issue 6: markdown twins by rel="alternate"."""
    web.page("/docs/a", link=header)
    assert get(web, "/docs/a").links == tuple(map(web.url, links))


def test_links_may_come_in_several_headers_and_follow_the_redirect(web: Site) -> None:
    """Issue 6: a link is relative to where the page is."""

    def twice(handler: Handler) -> None:
        handler.send_response(200)
        for name in ("a.md", "b.md"):
            handler.send_header("Link", f"<{name}>; rel=alternate; type=text/markdown")
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    web.redirect("/", "/docs/")
    web.route("/docs/", twice)
    assert get(web).links == (web.url("/docs/a.md"), web.url("/docs/b.md"))


def test_importing_it_loads_no_network() -> None:
    """DESIGN §9: `quire --help` stays instant."""
    code = "import sys, quire.sources.web; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"httpx2", "httpcore2", "anyio", "asyncio", "ssl"} & set(done.stdout.split())


def test_a_search_loads_nothing_of_the_web(tmp_path: Path) -> None:
    """DESIGN §9: a cold search is fast; pages and sites are read by code that it does not need."""
    (tmp_path / "a.md").write_text("# Zebras\n")
    code = (
        "import sys, quire; library = quire.Library.open('quire.db', create=len(sys.argv) > 1)\n"
        "if len(sys.argv) > 1: library.add('a.md')\n"
        "else: assert library.search('zebras').results; print(*sys.modules)"
    )
    for arguments in (["add"], []):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], cwd=tmp_path, capture_output=True, text=True, check=True
        )
    assert "quire.searcher" in done.stdout
    assert not {"quire.sources.web", "quire.html", "httpx2"} & set(done.stdout.split())


# ------------------------------------------------------------------------------------- piece by piece


@given(
    st.text(st.sampled_from("ab\r\n é🦊日\ufeff"), max_size=60),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "gb18030", "windows-1252"]),
    st.lists(st.integers(0, 60), min_size=2, max_size=8),
    st.binary(max_size=4),
)
def test_a_text_read_from_place_to_place_is_the_text(
    text: str, charset: str, places: list[int], more: bytes
) -> None:
    """What is read a part at a time, and what is skipped, is what reading it at once gives."""
    content = text.encode(charset, "replace") + more
    page = Response("", "", 200, content, "text", charset, "", None, None, ())
    whole = content.decode(charset, "replace")
    assert "".join(Decoder(page).pieces()) == whole
    read, ordered = Decoder(page), sorted(places)
    for start, end in itertools.pairwise(ordered):
        assert read(start, end) == whole[start:end]


@pytest.mark.parametrize("before", [0, 16381, 16382, 16383, 16384, 40_000])
@pytest.mark.parametrize(
    ("end", "charset"),
    [("é🦊".encode(), "utf-8"), ("🦊".encode()[:3], "windows-1252"), (b"\xe9 ", "windows-1252")],
)
def test_utf_8_is_told_from_the_rest_wherever_a_piece_ends(before: int, end: bytes, charset: str) -> None:
    """A character may lie across two pieces, or be cut off at the end."""
    assert likely_charset(b"x" * before + end, "text", {})[0] == charset
