"""What the classes and ids of an element mean."""

from __future__ import annotations

import re
from functools import lru_cache

# Classes and ids of the most common documentation tools: Sphinx and its themes, MkDocs, Docusaurus, mdBook,
# VitePress, GitBook, javadoc, rustdoc and others. tests/fixtures/sites has a page of each.
_NAMES = re.compile(
    r"(?P<unseen>sr-only|visually-?hidden|screen-reader-text|skip-?(?:link|nav|to-.*)"
    r"|.*copy-?(?:btn|button|code).*|.*clipboard.*|viewcode-(?:link|back)|print-?only)"
    r"|(?P<gutter>linenos?|linenodiv|line-?numbers?-(?:rows|wrapper)|linenumbers?|line-number|lnt?"
    r"|(?:rouge|code|line)-gutter|hljs-ln-numbers|blob-num|src-line-numbers"
    r"|react-syntax-highlighter-line-number)"
    r"|(?P<permalink>headerlink|hash-link|(?:header|heading|section|doc)-?anchor|anchor-?link|anchorjs-link"
    r"|sl-anchor-link|heading-?link|permalink|(?:td-)?heading-self-link)"
    r"|(?P<tabs>tabs|tab-?list|tabbed-labels|nav-tabs)"
    r"|(?P<codetable>highlighttable|rouge-table|hljs-ln|lntable)"
    r"|(?P<grid>summary-table)"
    r"|(?P<layout>(?:summary|details|member)-list|block-?list)"
    r"|(?P<signature>sig|code-header|(?:member|type)-signature|structfield)"
    r"|(?P<admonition>(?:(?:theme|markdown|md|docs?)-)?(?:admonition|alert|callout)|custom-block|hint|notice"
    r"|starlight-aside|note|tip|important|warning|caution|danger)"
    r"|(?P<furniture>.*breadcrumbs?(?:[-_].*)?"
    r"|(?:page-?|local-?|bd-|md-|docs?-)?toc|table-?of-?contents(?:[-_].*)?|on-this-page"
    r"|nav|navbar|navigation|nav-?(?:panel|header|footer|links|chapters|wrapper|wide-wrapper|menu)"
    r"|(?:top|side|site|page|docs?|main|mobile|global|local|post|prev-?next)-?nav(?:igation|bar)?"
    r"|sidebar|sphinxsidebar|(?:left|right|page|docs?|nav|site|primary|secondary)-?sidebar"
    r"|(?:(?:site|page|global|docs?|md|theme-doc|article)-?)?footer|(?:site|global)-?header|menu-?bar"
    r"|pagination(?:[-_].*)?|pager|prev-?next(?:[-_].*)?|rst-footer-buttons|related"
    r"|(?:theme-)?edit-(?:this-)?page(?:-link)?|edit-link|md-content__button|last-?updated"
    r"|.*(?:cookie|gdpr|consent)[-_]?(?:banner|notice|bar|consent|popup|modal|message|law|dialog).*"
    r"|d-print-none|no-?print|bd-header-article|article-header-buttons"
    r"|(?:page-|docs?-)?feedback(?:-.*)?|(?:social-?)?share(?:-?(?:buttons?|links?))?)"
)
LONGEST_NAME = 60


@lru_cache(maxsize=4096)
def meaning_of(name: str) -> str:
    """What a class or an id means for its element; "" if it is unknown."""
    found = _NAMES.fullmatch(name) if len(name) <= LONGEST_NAME else None
    return found.lastgroup or "" if found else ""
