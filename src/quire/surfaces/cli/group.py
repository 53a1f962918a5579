"""The command `quire`: one group of commands. Errors become one line and an exit code."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click
from click.core import ParameterSource

from quire.errors import QuireError, UsageError
from quire.surfaces.cli import options, output
from quire.version import VERSION


def main() -> None:
    """Run the command line."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # for what a command computes, more only cost time
    quire()


def run() -> None:
    """Run the command line as a process of its own, and end it at once.

    Python would first take apart all that it has loaded, which takes 50 ms after a search.
    """
    try:
        main()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: object) -> None:
    """End the process, if nothing is left to do for Python itself."""
    if threading.active_count() == 1 and (code is None or isinstance(code, int)):
        try:
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        except (
            AttributeError,
            OSError,
            ValueError,
        ):  # such as a pipe that is closed: Python knows what to do
            return
        os._exit(code or 0)


class _Command(click.Command):
    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own options, and those that all commands have."""
        return [*super().get_params(ctx), *options.levels]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read arguments; `-word` in a query is no option."""
        if not any(parameter.name == "query" for parameter in self.params):
            return super().parse_args(ctx, args)
        known = {name for parameter in self.get_params(ctx) for name in parameter.opts}
        try:
            return super().parse_args(ctx, options.with_excluded_words(args, known))
        except click.NoSuchOption as problem:
            said = f"{problem.format_message()} To search for it, put the query in quotes."
            raise click.UsageError(said, ctx) from None

    def invoke(self, ctx: click.Context) -> object:
        """Run it with arguments that can be stored and printed; file names stay unchanged."""
        for parameter in self.params:
            if parameter.type is click.STRING and parameter.name:
                ctx.params[parameter.name] = _as_text(ctx.params[parameter.name])
        if (library := ctx.params.get("library")) and _is_typed(ctx, "library"):
            ctx.meta[output.LIBRARY] = _as_text(library)
        return super().invoke(ctx)


def _is_typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def _as_text(value: Any) -> Any:
    from quire.surfaces import render

    if isinstance(value, tuple):
        return tuple(map(_as_text, value))
    return render.as_text(value) if isinstance(value, str) and not value.isascii() else value


class _Commands(click.Group):
    command_class = _Command
    group_class = type  # subgroups have this class, too

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Its own options, and those that all commands have."""
        return [*super().get_params(ctx), *options.levels]

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options before the command."""
        with _errors_shown():
            found = super().make_context(*args, **extra)
        found.color = output.colours()
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. Ctrl-C ends it like other programs, unless it handles that itself."""
        if (library := ctx.params.get("library")) and _is_typed(ctx, "library"):
            ctx.meta[output.LIBRARY] = _as_text(library)
        with _errors_shown():
            return super().invoke(ctx)


@contextmanager
def _errors_shown() -> Iterator[None]:
    """Show errors, each in a line; wrong usage as click shows it, unless JSON is wanted."""
    try:
        yield
    except QuireError as error:
        from quire.surfaces import render

        output.complain(error.to_json())
        sys.exit(render.exit_code(error))
    except KeyboardInterrupt:
        output.stop()
    except click.UsageError as problem:
        if not output.wants_json():
            raise
        command = problem.ctx.command_path if problem.ctx else "quire"
        output.complain(UsageError(problem.format_message(), command=command).to_json())
        sys.exit(problem.exit_code)


@click.group(
    cls=_Commands,
    epilog="For help on a command: quire search --help",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="quire", message="%(prog)s %(version)s")
def quire() -> None:
    """A document memory for AI agents and the people who work with them."""
