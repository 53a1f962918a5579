"""Hide the secrets of URLs in a text. Takes linear time and never fails.

`postgresql://quire:secret@db.example.com/quire` becomes `postgresql://quire:…@db.example.com/quire`.
A password may hold any character of its line, encoded or not. If it could end at several places, the last
one counts, so that too much is hidden and never too little. Redacting twice changes nothing.
"""

from __future__ import annotations

import re
from itertools import pairwise

from quire import later

HIDDEN = "…"

_NAMES = (
    r"(?:(?:ssl)?password|passwd|passphrase|pwd|api-?key"
    r"|(?:[a-z0-9.-]{1,32}_|[a-z0-9.-]{1,32}-)?(?:password|token|key|secret|signature))"
)
_OPTION = rf"(?<=[?&;#]){_NAMES}="  # ?password=, &access_token=
_OPTION_START = later.pattern(rf"[?&;#]{_NAMES}=", re.IGNORECASE)
_AND = r"&(?![\w.-]{1,40}=)"  # an & that begins no other option
_IN_TEXT = later.pattern(rf"({_OPTION})(?:[^&\s]|{_AND})*", re.IGNORECASE)
_IN_URL = later.pattern(rf"({_OPTION})(?:[^&]|{_AND})*", re.IGNORECASE)
# As libpq and many files write it: password=x, password='a b', password = "a".
_PAIR = later.pattern(
    r"""((?<![?&;#a-z])(?:ssl)?password\s*=\s*)
    (?:(?:'(?:[^'\\\n]|\\.)*(?:'|$) | "(?:[^"\\\n]|\\.)*(?:"|$))\S* | (?:[^\s\\'"]|\\.)(?:[^\s\\]|\\.)*)""",
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
# A scheme has no length limit, but searching for one of any length takes quadratic time.
_BEGINS = r"(?<![a-z0-9+.-])(?:postgres(?:ql)?:/{1,3}|[a-z][a-z0-9+.-]{0,30}://)"
_SCHEME = later.pattern(_BEGINS, re.IGNORECASE)
_NEXT = later.pattern(rf"""(?:(?<=[\s"'<(\[{{,=`])|^)(?:{_BEGINS})""", re.IGNORECASE)
# A port is no password, nor is the end of an IPv6 address.
_USER = later.pattern(r"(?!\[[0-9a-f:.]*\])[^\s/?#:]*:(?!\d{1,5}(?:[/?#\s]|$)|\s)", re.IGNORECASE)
_POSTGRES_USER = later.pattern(r"[^/?#:]*:")
_TOKEN = later.pattern(r"[^\s/?#]*@")


def text(text: str) -> str:
    """Any text, with the secrets of every URL in it hidden."""
    return _without_options("\n".join(map(_without_passwords, text.split("\n"))), _IN_TEXT)


def url(url: str) -> str:
    """One URL, with its secrets hidden. Blanks and line feeds do not end it."""
    return _without_options(_in_one_url(url, 0, len(url)), _IN_URL)


def _without_options(text: str, option: re.Pattern[str]) -> str:
    if "=" not in text:
        return text
    return _PAIR.sub(rf"\1{HIDDEN}", option.sub(rf"\1{HIDDEN}", text))


def _without_passwords(line: str) -> str:
    """A line, cut where a new URL begins, with each piece redacted."""
    if "@" not in line:
        return line
    starts = [0, *(found.start() for found in _NEXT.finditer(line)), len(line)]
    return "".join(_in_one_url(line, *ends) for ends in pairwise(starts))


def _in_one_url(line: str, start: int, end: int) -> str:
    """A piece of a line, redacted. Its first URL with a user reaches to the last @ of the piece."""
    last, place = line.rfind("@", start, end), start
    while (scheme := _SCHEME.search(line, place, end)) and scheme.end() <= last:
        place = scheme.end()
        if hidden := _hidden_user(line, place, last, scheme[0]):
            user, at = hidden
            return f"{line[start:place]}{user}{'' if at is None else line[at:end]}"
    return line[start:end]


def _hidden_user(line: str, place: int, last: int, scheme: str) -> tuple[str, int | None] | None:
    """What to show for the user and password that begin at a place, and where they end; None for none."""
    is_postgres, at = scheme.lower().startswith("postgres"), _at(line, place, last)
    if named := (_POSTGRES_USER if is_postgres else _USER).match(line, place, last if at is None else at):
        return (f"{named[0]}{HIDDEN}" if is_postgres else HIDDEN), at
    if not is_postgres and (token := _TOKEN.match(line, place, last + 1)):
        return HIDDEN, token.end() - 1
    return None


def _at(line: str, place: int, last: int) -> int | None:
    """The last @ that can end a password; None if none surely does: all come after `?password=`."""
    option = _OPTION_START.search(line, place, last)
    if option is None:
        return last
    before = line.rfind("@", place, option.start())
    return before if before >= 0 else None
