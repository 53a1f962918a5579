"""The options that commands share."""

from __future__ import annotations

import click

from quire.settings import LIBRARY

file_name = click.Path(readable=False, allow_dash=True)  # which may hold any bytes
library_option = click.option(
    "-L",
    "--library",
    envvar=LIBRARY,
    type=file_name,
    metavar="FILE|URL",
    help="A file or postgresql://…; by default the `library` setting, else the nearest .quire/library.db "
    "upward, else your own.",
)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON, one line for each answer.")
