"""A web page to markdown, its main part only.

Input: HTML as text, however broken, and its address. Output: an Article. Nothing is fetched. Always: any
text gives an Article, in time linear in its length; code in a fence is exactly as on the page; no link
leads to a script. Text that a reader of the page cannot see is left out, and so is text that is not about
its subject: menus, banners, footers.

Four steps: parse the text to a tree of elements, closed as a browser would close them (parse.py); drop
unwanted elements and mark the furniture (clean.py); choose the element that holds the content (content.py);
write that element as plain, well-formed HTML, which html-to-markdown converts (writer.py).
"""

from quire.html.anchors import Anchor
from quire.html.article import Article, to_markdown, whole_to_markdown

__all__ = ["Anchor", "Article", "to_markdown", "whole_to_markdown"]
