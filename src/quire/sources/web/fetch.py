"""A URL to its response: one safe GET.

`Fetcher.get` takes a URL and returns a Response: the decompressed bytes, with their type and charset.
Anything but a page of text raises a SourceError. Always: a connection goes to an address that was checked
for this very connection, and only if every address of the name is public or the name is allowed; redirects
follow the same rules; no more than `max_bytes` are kept; only the headers in this file are sent: no
cookies, no Referer, nothing from the environment.

If a proxy is set, it resolves names itself. Quire checks the names that it can resolve first.
"""

from __future__ import annotations

import re
import time
import zlib
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from io import BytesIO
from typing import TYPE_CHECKING, Any

from quire.config import WebSettings
from quire.errors import NotFound, NotText, Refused, SettingError, TooLarge, TransientError
from quire.sources.charset import declared_charset, likely_charset
from quire.sources.web.decompress import ENCODINGS, Decompressor
from quire.sources.web.guard import Guard, Resolve, Retry, checked_network, resolve_name, why
from quire.sources.web.response import (
    BINARY,
    DATA,
    Response,
    file_ending,
    kind_of,
    markdown_links,
    media_of,
)
from quire.sources.web.urls import PORTS, Target, absolute, shown_url, target_of

if TYPE_CHECKING:
    from ssl import SSLContext

    from anyio import Semaphore
    from httpcore2 import AsyncConnectionPool, Proxy
    from httpcore2 import Response as Reply

ACCEPT = "text/markdown, text/html;q=0.8, text/plain;q=0.7, */*;q=0.1"
MAX_WAIT = 60.0  # seconds; if a server asks for a longer wait, Quire gives up
_REDIRECTS = (301, 302, 303, 307, 308)
_PASSING = (408, 425, 429)  # the 4xx worth a retry; the others are final
CHECK_URL = ". Check the URL"  # what to do about a page that is not there
_HEAD = 8192  # bytes that tell what a page is

Sleep = Callable[[float], Awaitable[object]]


@cache
def _tls() -> SSLContext:
    """A TLS context that checks certificates. Loading the system's takes 30 ms, so it is made once."""
    from httpx2 import create_ssl_context

    return create_ssl_context(trust_env=False)


def _proxy(url: str) -> Proxy:
    import httpcore2
    import httpx2

    try:
        proxy = httpx2.Proxy(url)
    except (httpx2.InvalidURL, ValueError):
        proxy = None
    if proxy is None or proxy.url.scheme not in PORTS:
        raise SettingError("web.proxy", f"{shown_url(url)} is not an http or https URL")
    return httpcore2.Proxy(str(proxy.url), proxy.raw_auth)


@dataclass(slots=True)
class _Request:
    """One page to fetch, and the seconds that are left for it."""

    asked: Target
    accept: str
    etag: str | None
    last_modified: str | None
    left: float
    is_data: bool = False  # bytes of any type are wanted, not a page

    @property
    def url(self) -> str:
        return str(self.asked)

    @property
    def headers(self) -> dict[str, str]:
        named = {
            "Accept": self.accept,
            "If-None-Match": self.etag,
            "If-Modified-Since": self.last_modified,
        }
        return {name: value for name, value in named.items() if value}

    @contextmanager
    def running(self) -> Iterator[None]:
        from anyio import fail_after

        began = time.monotonic()
        try:
            with fail_after(self.left):
                yield
        finally:
            self.left -= time.monotonic() - began


@dataclass(frozen=True, slots=True)
class _Answer:
    """The answer to one request; it has content only with status 200."""

    target: Target
    status: int
    fields: Mapping[str, str]
    content: bytes


async def _sleep(seconds: float) -> None:
    from anyio import sleep

    await sleep(seconds)


class Fetcher:
    """Fetch pages, a few in parallel from each host. Use it with `async with`, which closes connections."""

    def __init__(
        self, settings: WebSettings, *, sleep: Sleep = _sleep, resolve: Resolve | None = None
    ) -> None:
        self._settings = settings
        self._sleep = sleep
        self._guard = Guard(settings.allow_hosts, resolve or resolve_name)
        self._pool = self._connections()
        self._slots: defaultdict[str, Semaphore] = defaultdict(self._slot)

    def _connections(self) -> AsyncConnectionPool:
        from httpcore2 import AsyncConnectionPool

        proxy = _proxy(self._settings.proxy) if self._settings.proxy else None
        return AsyncConnectionPool(
            ssl_context=_tls(),
            proxy=proxy,
            max_connections=None,
            max_keepalive_connections=20,
            keepalive_expiry=5.0,
            network_backend=None if proxy else checked_network(self._guard),
        )

    def _slot(self) -> Semaphore:
        from anyio import Semaphore

        return Semaphore(self._settings.per_host)

    async def __aenter__(self) -> Fetcher:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._pool.aclose()

    async def get(
        self, url: str, *, etag: str | None = None, last_modified: str | None = None, accept: str = ACCEPT
    ) -> Response:
        """The page at a URL. With an etag or a time, status 304 means that it is unchanged.

        Raises Refused, NotFound, NotText, TooLarge, or TransientError when every try failed.
        """
        return await self._try(_Request(target_of(url), accept, etag, last_modified, self._settings.deadline))

    async def download(self, url: str) -> Response:
        """The bytes at a URL, whatever their type: a sitemap. Raises as `get`, but never NotText."""
        deadline = self._settings.deadline
        return await self._try(_Request(target_of(url), "*/*", None, None, deadline, is_data=True))

    async def _try(self, request: _Request) -> Response:
        """The response to a request, after as many tries as are allowed."""
        tries = 0
        while True:
            try:
                return await self._follow(request)
            except Retry as failure:
                wait = self._wait(request, failure, tries)
            except TimeoutError:
                limit = f"web.deadline = {self._settings.deadline:g} s"
                raise TransientError(request.url, f"took longer than {limit}. Try again later") from None
            await self._sleep(wait)
            tries += 1

    def _wait(self, request: _Request, failure: Retry, tries: int) -> float:
        """The seconds until the next try. Raises TransientError if there is none."""
        if failure.after is not None and failure.after > MAX_WAIT:
            said = f"{failure.reason}. Try again in {failure.after:,.0f} s"
            raise TransientError(request.url, said, retry_after=failure.after)
        if tries >= min(self._settings.retries, failure.retries):
            raise TransientError(request.url, f"{failure.reason}. Try again later")
        return 2.0**tries if failure.after is None else failure.after

    async def _follow(self, request: _Request) -> Response:
        """The page at the end of the redirects."""
        hops = [request.url]
        target = request.asked
        try:
            while True:
                self._guard.check(target)
                answer = await self._ask(target, request)
                if answer.status not in _REDIRECTS or "location" not in answer.fields:
                    return _response(request, answer)
                if len(hops) > self._settings.redirects:
                    raise Refused(
                        request.url, f"is redirected more than web.redirects = {len(hops) - 1} times"
                    )
                hops.append(absolute(str(target), answer.fields["location"]))
                target = target_of(hops[-1])
        except Refused as problem:
            way = f" (redirected: {' → '.join(map(shown_url, hops))})" if hops[1:] else ""
            raise Refused(request.url, f"{problem.reason}{way}") from None

    async def _ask(self, target: Target, request: _Request) -> _Answer:
        from httpcore2 import URL

        url = URL(scheme=target.scheme, host=target.host, port=target.port, target=target.path)
        async with self._slots[target.host]:
            with request.running(), _network():
                await self._check_behind_proxy(target)
                async with self._pool.stream(
                    "GET", url, headers=self._headers(target, request), extensions=self._timeouts()
                ) as reply:
                    fields = _fields(reply.headers)
                    content = await self._content(request, reply, fields)
                    return _Answer(target, reply.status, fields, content)

    async def _check_behind_proxy(self, target: Target) -> None:
        if self._settings.proxy:
            with suppress(Retry):  # where only the proxy can resolve public names
                await self._guard.addresses(target.host, target.port)

    def _headers(self, target: Target, request: _Request) -> list[tuple[bytes, bytes]]:
        fields = {
            "Host": target.authority,
            "User-Agent": self._settings.user_agent,
            "Accept-Encoding": "gzip, deflate",
            **request.headers,
        }
        return [(name.encode(), value.encode("latin-1", "replace")) for name, value in fields.items()]

    def _timeouts(self) -> dict[str, Any]:
        """Timeouts such that all tries together fill the deadline."""
        silence = self._settings.deadline / (self._settings.retries + 1)
        return {"timeout": {"connect": silence, "read": silence, "write": silence}}

    async def _content(self, request: _Request, reply: Reply, fields: Mapping[str, str]) -> bytes:
        if reply.status == 200:
            self._check_fields(request, fields)
            return await self._read(request, reply, _encoding(fields))
        if 300 <= reply.status < 400:
            await _drain(reply)
        return b""

    async def _read(self, request: _Request, reply: Reply, encoding: str) -> bytes:
        """The content of an answer, decompressed piece by piece up to the limit."""
        content = BytesIO()  # gives its bytes away without a copy
        decompressor = Decompressor(encoding)
        async with aclosing(reply.aiter_stream()) as packed:
            async for data in packed:
                for piece in decompressor.feed(data):
                    content.write(piece)
                    self._check_size(request, content.tell())
        if not decompressor.is_whole:
            raise Retry("cannot be fetched: it ended in the middle")
        return content.getvalue()

    def _check_fields(self, request: _Request, fields: Mapping[str, str]) -> None:
        """Raise for content that need not be read."""
        self._check_size(request, int(fields.get("content-length", 0)))
        media = media_of(fields)
        if BINARY.match(media) and not request.is_data and not file_ending(media, ""):
            raise NotText(request.url, f"is {media}, not text")
        if _encoding(fields) not in ENCODINGS:
            raise NotText(request.url, f"is compressed as {_encoding(fields)}, which was not asked for")

    def _check_size(self, request: _Request, size: int) -> None:
        cap = self._settings.max_bytes
        if size > cap:
            reason = f"is over web.max_bytes = {cap:,}. Raise [web] max_bytes in quire.toml"
            raise TooLarge(request.url, reason)


async def _drain(reply: Reply) -> None:
    """Read the short body of a redirect or a 304, so that the next request can use its connection."""
    size = 0
    async with aclosing(reply.aiter_stream()) as pieces:
        async for piece in pieces:
            size += len(piece)
            if size > _HEAD:
                return


@contextmanager
def _network() -> Iterator[None]:
    """Turn network errors into Retry."""
    import httpcore2

    try:
        yield
    except (
        httpcore2.NetworkError,
        httpcore2.TimeoutException,
        httpcore2.ProtocolError,
        httpcore2.ProxyError,
        zlib.error,
        OSError,
    ) as problem:
        raise Retry(f"cannot be fetched: {why(problem)}") from None


def _encoding(fields: Mapping[str, str]) -> str:
    return fields.get("content-encoding", "").strip().lower()


def _fields(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by lower-case name; repeated ones are joined."""
    fields: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def _response(request: _Request, answer: _Answer) -> Response:
    if answer.status == 200:
        return _whole(request, answer)
    if answer.status == 304 and (request.etag or request.last_modified):
        return _unchanged(request, answer)
    raise _failure(request, answer)


def _whole(request: _Request, answer: _Answer) -> Response:
    if request.is_data:
        return Response(request.url, str(answer.target), 200, answer.content, "data", "", "", None, None, ())
    media, declared = media_of(answer.fields), declared_charset(answer.content, answer.fields)
    if ending := file_ending(media, answer.target.path, answer.content):
        validators = answer.fields.get("etag"), answer.fields.get("last-modified")
        end = str(answer.target)
        return Response(request.url, end, 200, answer.content, ending, "", "", *validators, ())
    head = answer.content[:_HEAD].decode(declared or "latin-1", "replace")
    kind = kind_of(head, media, answer.target.path)
    if "\0" in head:
        raise NotText(request.url, "holds NUL bytes, so it is not text")
    if kind != "html" and DATA.fullmatch(media):
        raise NotText(request.url, f"is {media}, not a page to read")
    charset, warning = (declared, "") if declared else likely_charset(answer.content, kind, answer.fields)
    return Response(
        url=request.url,
        final_url=str(answer.target),
        status=200,
        content=answer.content,
        kind=kind,
        charset=charset,
        warning=warning,
        etag=answer.fields.get("etag"),
        last_modified=answer.fields.get("last-modified"),
        links=markdown_links(answer.fields.get("link", ""), str(answer.target)),
    )


def _unchanged(request: _Request, answer: _Answer) -> Response:
    return Response(
        url=request.url,
        final_url=str(answer.target),
        status=304,
        content=b"",
        kind="text",
        charset="utf-8",
        warning="",
        etag=answer.fields.get("etag", request.etag),
        last_modified=answer.fields.get("last-modified", request.last_modified),
        links=(),
    )


def _failure(request: _Request, answer: _Answer) -> Exception:
    """The error for a status without a page."""
    status = answer.status
    phrase = f"the server answered {status} {_phrase(status)}".rstrip()
    if status in _PASSING or status >= 500:
        return Retry(phrase, after=_retry_after(answer.fields.get("retry-after", "")))
    if status in (401, 403, 407):
        return NotFound(request.url, f"{phrase}. If you may read it, save it and add the file", status)
    if 400 <= status < 500:
        return NotFound(request.url, f"{phrase}{CHECK_URL}", status)
    return TransientError(request.url, f"{phrase}, which is not a page. Try again later")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


def _retry_after(value: str) -> float | None:
    """The seconds that a server asks for, as a number or as a date."""
    from email.utils import parsedate_to_datetime

    if re.fullmatch(r"[0-9]{1,9}", value):
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
