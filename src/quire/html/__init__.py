"""A web page to markdown, its main part only.

In comes HTML as text, however broken, and the address it came from; out comes an Article. Nothing
is fetched. Always: any text gives an Article, in time that grows with its length alone; code stands
in its fence as it stood on the page; no link leads to a script. What a reader of the page cannot
see is left out, and so is what is not about its subject: menus, banners, footers.

Four steps: text to a tree of elements, as a browser would close them (parse.py); a sweep that drops
what is never wanted and marks the furniture (clean.py); the choice of the element that holds the
content (content.py); and that element written as plain, well-formed HTML, which
html-to-markdown turns into markdown (writer.py).
"""

from quire.html.article import Article, to_markdown

__all__ = ["Article", "to_markdown"]
