"""Files that are not plain text, to markdown and the places that its parts came from.

Input: the bytes of a file and its name. Output: a Converted. Always: a file that is damaged, encrypted or
hostile raises a SourceError; nothing outside the bytes is read; no program, macro or script is run.
Conversion may take time and memory: run it in a worker.
"""

from quire.readers.base import Converted
from quire.readers.formats import CONVERTED, Format, check_format, convert, format_named, missing_extra

__all__ = ["CONVERTED", "Converted", "Format", "check_format", "convert", "format_named", "missing_extra"]
