"""How PDF files are read: Quire (with kreuzberg) beside kreuzberg's own markdown and pdf_oxide.

    python -m bench.readers FILE.pdf …        # needs: pip install pdf_oxide, for its rows

Each file is read in a process of its own. Headings are those that markdown has; a page is known if the text
says where it begins; code lines are lines of the pages' own text that are still lines of their own.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

_READ = """
import json, resource, sys, time
started = time.process_time()
{code}
spent = time.process_time() - started
print(json.dumps([spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, text, pages]))
"""
_CODE = {
    "Quire": """
from quire import readers
from quire.config import DEFAULT
found = readers.convert(open(sys.argv[1], "rb").read(), "x.pdf", DEFAULT.document)
text, pages = found.text, len(found.places.starts)
""",
    "kreuzberg": """
from kreuzberg import ExtractionConfig, PageConfig, extract_file_sync
wanted = {"output_format": "markdown", "use_cache": False, "disable_ocr": True}
text = extract_file_sync(sys.argv[1], config=ExtractionConfig(**wanted)).content
pages = 0
""",
    "pdf_oxide": """
import pdf_oxide
document = pdf_oxide.PdfDocument(sys.argv[1])
parts = [document.to_markdown(page) for page in range(document.page_count())]
text, pages = "".join(parts), len(parts)
""",
}
_LINES = """
from kreuzberg import ExtractionConfig, PageConfig, extract_file_sync
wanted = {"use_cache": False, "disable_ocr": True, "pages": PageConfig(extract_pages=True)}
found = extract_file_sync(sys.argv[1], config=ExtractionConfig(**wanted)).pages
text, pages = "\\n".join(page["content"] for page in found), len(found)
"""


def read(code: str, path: Path) -> tuple[float, int, str, int] | None:
    command = [sys.executable, "-c", _READ.format(code=code), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    last = done.stdout.strip().rpartition("\n")[2]
    return tuple(json.loads(last)) if done.returncode == 0 else None


def code_lines(text: str) -> set[str]:
    """Lines that look like commands or code, without the spaces around them."""
    lines = (line.strip() for line in re.split(r"\r?\n", text))
    return {line for line in lines if re.search(r"[(){}=<>]", line) and 10 < len(line) < 80}


def main() -> None:
    print("| file | reader | CPU s | MB | headings | pages known | lines of code kept |")
    print("|---|---|---|---|---|---|---|")
    for path in map(Path, sys.argv[1:]):
        said = read(_LINES, path)
        wanted = code_lines(said[2]) if said else set()
        for name, code in _CODE.items():
            found = read(code, path)
            if found is None:
                print(f"| {path.name} | {name} | not installed, or it failed | | | | |")
                continue
            spent, memory, text, pages = found
            headings = len(re.findall(r"(?m)^#{1,6} ", text))
            lines = {line.strip().lstrip("\\").replace("\\", "") for line in text.split("\n")}
            kept = sum(line.replace("\\", "") in lines for line in wanted) / max(1, len(wanted))
            print(f"| {path.name} | {name} | {spent:.2f} | {memory} | {headings} | {pages} | {kept:.0%} |")


if __name__ == "__main__":
    main()
