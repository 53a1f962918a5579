"""The numbers of the first document: sections of documents and sites."""

from __future__ import annotations

import quire


def test_t3_a_subtree_that_fits_is_one_chunk() -> None:
    """T3: A heading with all below it is one chunk while it has at most max_tokens."""
    text = "# A\n\nOne.\n\n## B\n\nTwo.\n\n### C\n\nThree.\n"
    tokens = -(-len(text) // 4)
    (chunk,) = quire.chunk(text, "sections", max_tokens=tokens)
    assert chunk.text == text
    assert len(quire.chunk(text, "sections", max_tokens=tokens - 1)) > 1
