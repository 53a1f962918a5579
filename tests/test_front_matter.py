"""Front matter never harms: whatever it holds, it is read or kept as text, soon and in little memory."""

from __future__ import annotations

import time
import tracemalloc
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quire import Document, Tree

DIGITS = "1" * 4300
HEX = "0x" + "f" * 4000
PARTS = 30_000
KEY = ".".join("a" * PARTS)


def yaml(block: str) -> Document:
    return Document.from_text(f"---\n{block}\n---\n\n# Title\n")


def toml(block: str) -> Document:
    return Document.from_text(f"+++\n{block}\n+++\n\n# Title\n")


def assert_kept_as_text(document: Document) -> None:
    assert document.front_matter
    assert document.metadata == {}
    assert Tree(document).title == "Title"
    (warning,) = document.warnings
    assert warning.startswith("front matter is kept as text: ")
    assert len(warning.splitlines()) == 1
    assert len(warning) < 300


@pytest.mark.parametrize(
    "block",
    [
        "a: !!python/name:os.system x",
        "a: !!int [x]",
        "a: 1\n? [x]\n: 2",
        "a:\n " + "- " * 1900 + "x",
        "a: " + "[" * 60_000,
        "a: [" + "&a x," * 12_000 + "]",
    ],
    ids=lambda block: block[:20],
)
def test_yaml_that_cannot_be_read_is_kept_as_text(block: str) -> None:
    """BAD_INPUTS: tags that do not fit and deep nesting raise nothing."""
    assert_kept_as_text(yaml(block))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2026-02-30", "2026-02-30"),
        ('!!bool "x"', "x"),
        ('!!int ""', ""),
        ('!!float ""', ""),
        ('!!timestamp "x"', "x"),
        ("!!binary x", "x"),
        (f"1{DIGITS}", f"1{DIGITS}"),
        (HEX, HEX),
        (f"!!int {HEX}", HEX),
        (f"{DIGITS}.5", f"{DIGITS}.5"),
        ("1" + ":1" * 30_000, "1" + ":1" * 30_000),
        ("{{date}}", "{{date}}"),
        ("{{date:YYYY-MM-DD}} {{time}}  # from a template", "{{date:YYYY-MM-DD}} {{time}}"),
        ("[{{tag}}, 'b']", "[{{tag}}, 'b']"),
        ("{% now 'utc' %}", "{% now 'utc' %}"),
    ],
    ids=lambda value: value[:20],
)
def test_a_value_that_its_type_cannot_be_made_of_stays_text(written: str, value: str) -> None:
    """Vaults: one bad value does not discard the rest. BAD_INPUTS: endless numbers raise nothing."""
    started = time.monotonic()
    document = yaml(f"title: Plan\ndate: {written}\ntags: [a]\naliases: Other")
    assert document.metadata["date"] == value
    assert (document.title, document.tags, document.aliases) == ("Plan", ("a",), ("Other",))
    assert document.warnings == ()
    assert time.monotonic() - started < 5


def test_the_items_of_a_list_may_be_of_templates() -> None:
    """Vaults: a template is read before it is filled in."""
    assert yaml("list:\n  - {{a}}\n  - b\nmap: {c: 1}").metadata == {"list": ["{{a}}", "b"], "map": {"c": 1}}


@pytest.mark.parametrize("block", ["a: {{b}}\nc: [", "a: {{b}}\nc: *d", "a: {{b}}\nc: " + "[" * 60_000])
def test_a_template_is_no_excuse_for_what_is_broken(block: str) -> None:
    """BAD_INPUTS: what is refused is refused in a template too."""
    assert_kept_as_text(yaml(block))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(
            (word, word)
            for word in ("no", "yes", "on", "Off", "n", "10:30", "01234", "0x1f", "1_000", "=", "<<")
        ),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("5", 5),
        ("-17", -17),
        ("3.5", 3.5),
        ("2026-03-01", date(2026, 3, 1)),
        ("2026-03-01T10:30:00Z", "2026-03-01T10:30:00Z"),
    ],
)
def test_plain_values_are_those_of_yaml_1_2(written: str, value: object) -> None:
    """Vaults: `lang: no` is a language and `10:30` a time, as in Obsidian."""
    found = yaml(f"on: {written}").metadata
    assert found == {"on": value}
    assert type(found["on"]) is type(value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (yaml("a: 1\nb: c: d"), "broken YAML: line 3: a second `: ` is in it"),
        (yaml("a: 1\nb: [x, y\nc: 2"), "broken YAML: line 3: a bracket is not closed"),
        (yaml('a: 1\nb: "x\nc: 2\nd: 3'), "broken YAML: line 3: a quote is not closed"),
        (yaml("a: 1\nb: @home"), "broken YAML: line 3: a value begins with a sign that YAML reserves"),
        (yaml("a: 1\nword\nb: 2"), "broken YAML: line 3: a key has no `:`"),
        (yaml("a: {{b}}\nb: @home"), "broken YAML: line 3: a value begins with a sign that YAML reserves"),
        (yaml("a: 1\nb: !x y"), "broken YAML: line 3: it has a tag that means nothing here"),
        (yaml("a: 1\n? [x]\n: 2"), "broken YAML: line 3: a list or a map cannot be a key"),
        (yaml("a: \x01"), "broken YAML: it has a control character"),
        (toml("a = 1\nb c"), "broken TOML: line 3: expected '=' after a key"),
        (toml(f"a = 1{DIGITS}"), "broken TOML: a value cannot be read"),
    ],
    ids=lambda one: str(one)[:30],
)
def test_what_is_wrong_is_said_with_the_line_of_the_file(document: Document, said: str) -> None:
    """Errors are plain English: the line is counted from the start of the file, and no Python is named."""
    (warning,) = document.warnings
    assert warning.startswith(f"front matter is kept as text: {said}")
    assert "Error" not in warning


@pytest.mark.parametrize(
    "block",
    [
        f"{KEY} = 1",
        f"[{KEY}]",
        f"[[{KEY}]]",
        " . ".join("a" * 16_000) + " = 1",
        ".".join(['"a"'] * 16_000) + " = 1",
        f"x = {{{KEY} = 1}}",
        f"x = [\n1,\n{{{KEY} = 1}}]",
        f'x = \'\'\'a\'\'\'\'\ny = """\\"""""\n{KEY} = 1',
        "x = " + "[" * 60_000,
        "x = " + "{a = " * 10_000,
        "x = " + ("{" + ".".join("a" * 40) + " = ") * 39 + "1" + "}" * 39,
        f"x = 1{DIGITS}",
        f"x = {HEX}",
        "a = 1\na = 2",
        'x = """' + '\\"""' * 16_000,
    ],
    ids=lambda block: block[:20],
)
def test_toml_that_cannot_be_read_is_kept_as_text(block: str) -> None:
    """BAD_INPUTS: a TOML key of 30,000 parts took 3.5 GB of memory."""
    tracemalloc.start()
    try:
        assert_kept_as_text(toml(block))
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "document",
    [
        yaml("a: [" + ",".join(f"&a{i} x" for i in range(6500)) + "]"),
        yaml("a: 1\n" * 10_000),
        yaml("a: 1\n.nan: 2\n.nan: 3"),
        yaml("a: 1\n<<: [" + "{b: 1}," * 7000 + "]"),
        toml("[[a]]\n" * 10_000),
        toml("[" + ".".join("b" * 40) + "]\n" + "".join(f"{'a.' * 39}x{i} = 1\n" for i in range(750))),
        toml("".join(f"[a{i}]\n" for i in range(8000))),
    ],
    ids=["anchors", "duplicates", "nan", "merges", "tables", "deep tables", "many tables"],
)
def test_large_front_matter_is_read_soon(document: Document) -> None:
    """Time is bounded by the length."""
    started = time.monotonic()
    assert document.metadata
    assert document.warnings == ()
    assert time.monotonic() - started < 5


def test_dots_in_values_and_strings_are_no_nesting() -> None:
    """Only keys and brackets nest."""
    long = "A sentence. " * 50
    block = (
        f"title = '{long}'\nnumbers = [{'1.5, ' * 90}]\n# {long}\n"
        f'text = """{long}"""\n"{long}" = 1\nx = [\'[[[\', "{{", """]]]"""]'
    )
    document = toml(block)
    assert document.warnings == ()
    assert len(document.metadata) == 5


PLAIN = "x 'x' \"\" 1 1.5 ~ .nan .inf true 2026-01-31 2026-99-99 0x1f 1:30 1e999 - *a &a << !! | > % @ `"
SCALARS = st.sampled_from([*PLAIN.split(), "&a x", "\t", '"\\0"', '"\\ud800"', '"\\', DIGITS + "1", HEX])
TAGS = st.sampled_from(
    [
        f"!!{tag} "
        for tag in "bool int float timestamp binary omap pairs set str null map seq merge value".split()
    ]
    + ["", "", "! ", "!x ", "!!python/name:os ", "!<tag:x> "]
)
YAML = st.recursive(
    st.builds(str.__add__, TAGS, SCALARS),
    lambda inner: st.one_of(
        st.builds(lambda tag, items: f"{tag}[{', '.join(items)}]", TAGS, st.lists(inner, max_size=3)),
        st.builds(lambda tag, a, b: f"{tag}{{{a}: {b}}}", TAGS, inner, inner),
        st.builds("\n  - {}\n  - {}".format, inner, inner),
        st.builds("\n  ? {}\n  : {}".format, inner, inner),
    ),
    max_leaves=8,
)
TOML_KEYS = st.lists(st.sampled_from(["a", "b", '"c"', "'d'", '""', " e ", "1", "é"]), min_size=1, max_size=4)
TOML_VALUES = "1 1.5 'x' \"\"\"x\"\"\"\" '''x'''' true nan 2026-01-31 07:99:00 x \"\\ 1_0 1e999"
TOML = st.recursive(
    st.sampled_from([*TOML_VALUES.split(), "", '"""x\n"""', DIGITS + "1", HEX]),
    lambda inner: st.one_of(
        st.builds("[{}, {}]".format, inner, inner),
        st.builds(lambda key, value: f"{{{'.'.join(key)} = {value}}}", TOML_KEYS, inner),
        st.builds("[\n{} # {}\n]".format, inner, inner),
    ),
    max_leaves=8,
)


def assert_harmless(document: Document) -> None:
    assert len(document.warnings) <= 1
    assert all(len(warning.splitlines()) == 1 for warning in document.warnings)
    assert repr(document.metadata)
    assert all(isinstance(key, str) for key in document.metadata)
    assert Tree(document).title


@given(st.lists(st.tuples(YAML, YAML), min_size=1, max_size=5))
def test_no_yaml_raises(pairs: list[tuple[str, str]]) -> None:
    """Front matter never harms."""
    assert_harmless(yaml("a: 1\n" + "\n".join(f"{key}: {value}" for key, value in pairs)))


@given(
    st.lists(
        st.tuples(st.sampled_from(["{} = {}", "[{}]", "[[{}]]", "{}", "{} ="]), TOML_KEYS, TOML), max_size=5
    )
)
def test_no_toml_raises(lines: list[tuple[str, list[str], str]]) -> None:
    """Front matter never harms."""
    assert_harmless(toml("\n".join(form.format(".".join(key), value) for form, key, value in lines)))


@given(st.sampled_from([yaml, toml]), st.text(alphabet="aA1.:=-?[]{}\"'\\#&*!|>%,~ \n\t", max_size=200))
def test_no_punctuation_raises(read: object, text: str) -> None:
    """Front matter never harms."""
    assert callable(read)
    assert_harmless(read(f"a: 1\n{text}"))
