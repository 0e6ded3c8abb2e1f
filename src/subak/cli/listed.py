"""Shows each command as one line of help and loads it when it is called or asked for its own help."""
import pkgutil
from collections import UserDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup

from subak.cli.ending import loading

if TYPE_CHECKING:
    from typer._click import Command as ClickCommand
    from typer._click import Context, HelpFormatter

LOOK: Any = {"rich_markup_mode": "markdown", "pretty_exceptions_enable": False, "add_completion": False}


class Listed(NamedTuple):
    """A command, or several below one word, as the help above it shows it."""

    name: str
    summary: str  # the first sentence of its help, which a test compares
    where: str  # MODULE:NAME, of a function, or of a Typer with several
    panel: str | None = None  # a heading of the help
    settings: dict[str, Any] | None = None  # of the context in which it is called

    def line(self) -> TyperCommand:
        """Return what a list of commands shows."""
        return TyperCommand(self.name, help=self.summary, rich_help_panel=self.panel)

    def load(self) -> "ClickCommand":
        """Return the command itself."""
        with loading():
            found = pkgutil.resolve_name(self.where)
        if not isinstance(found, typer.Typer):
            function, found = found, typer.Typer(**LOOK)
            found.command(self.name, context_settings=self.settings)(function)
        found.info.cls = Group
        for each in found.registered_commands:
            each.cls = Command
        command: Any = typer.main.get_command(found)
        command.name, command.rich_help_panel = self.name, self.panel
        return command


HELP_ALL = "--help-all"
RARE_PANELS = frozenset({"A federation", "Fair shares"})
RARE = frozenset({
    # of simulations
    "--lotes", "--request-error", "--usage-swing", "--interference", "--check-policy", "--answer-timeout",
    "--parameter", "--slow-start",
    "--locality-wait", "--search-seconds", "--search-moves", "--interval", "--measure-from", "--measure-until",
    "--energy", "--checkpoint",
    # of convert, each for one or two formats
    "--resubmissions", "--censored", "--model", "--shuffle", "--slots", "--computer", "--batch", "--unfinished",
    "--topology", "--map-slots", "--reduce-slots", "--rack-local", "--off-rack"})
# Of commands that ask about a fleet or a scheduler as given: what edits them, and what has a default that suits most.
EDITS = frozenset({"--machines", "--capacity", "--scale", "--remove", "--add-machines", "--gangs", "--estimates",
                   "--processes", "--until"})
RARE_OF = {"size": EDITS | {"--limit"}, "tune": EDITS | {"--held-out-workload", "--sampler-seed"}}


class Command(TyperCommand):
    """A command whose --help shows what most people need, and --help-all the rest."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Return what is left of the arguments; of --help-all show the whole help, and end."""
        _show_all(ctx, args)
        return super().parse_args(ctx, args)

    def format_help(self, ctx: "Context", formatter: "HelpFormatter") -> None:
        """Write the help; of rare options only how many there are, unless all are asked for."""
        rare: list[Any] = [] if ctx.meta.get(HELP_ALL) else [each for each in self.params if self._is_rare(each)]
        for each in rare:
            each.hidden = True
        try:
            super().format_help(ctx, formatter)
        finally:
            for each in rare:
                each.hidden = False
        if rare:
            from subak.report.console import echo  # noqa: PLC0415  (with the help alone)

            echo(f" {len(rare)} more options: {ctx.command_path} {HELP_ALL}")

    def _is_rare(self, parameter: Any) -> bool:
        """Return whether few people need an option."""
        rare = RARE | RARE_OF.get(self.name or "", frozenset())
        in_rare = getattr(parameter, "rich_help_panel", None) in RARE_PANELS
        return not getattr(parameter, "hidden", False) and (in_rare or not rare.isdisjoint(parameter.opts))


def _show_all(ctx: Any, args: list[str]) -> None:
    """Show the whole help and end where --help-all asks for it, and not the program that a command line runs."""
    own = args[:args.index("--")] if "--" in args else args
    if HELP_ALL in (own if ctx.allow_interspersed_args else own[:1]) and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        ctx.get_help()  # prints it
        ctx.exit()


class Group(TyperGroup):
    """Several commands below one word, which take --help-all as all others do."""

    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        """Return what is left of the arguments; of --help-all show the whole help, and end."""
        _show_all(ctx, args)
        return super().parse_args(ctx, args)


class Commands(UserDict[str, Any]):
    """Commands by name, in the order of the help; each is loaded when it is asked for."""

    def __init__(self, listed: tuple[Listed, ...]) -> None:
        super().__init__()
        self.data = {each.name: each for each in listed}
        self.lines = {each.name: each.line() for each in listed}

    def __getitem__(self, name: str) -> Any:
        if isinstance(self.data[name], Listed):
            self.data[name] = self.data[name].load()
        return self.data[name]


class ListedGroup(Group):
    """Whoever lists commands gets their lines; whoever calls one, or completes its words, gets the command."""

    listed: tuple[Listed, ...] = ()
    meant: Mapping[str, str] = {}  # by words of other programs: which commands do the same here

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.found = Commands(self.listed)
        self.commands = self.found

    def get_command(self, ctx: "Context", cmd_name: str) -> "ClickCommand | None":
        """Return the line of a command, None where there is none of that name."""
        return self.found.lines.get(cmd_name)

    def list_commands(self, ctx: "Context") -> list[str]:
        """Return their names, in the order of the help."""
        return list(self.found.data)

    def resolve_command(self, ctx: "Context", args: list[str]) -> "tuple[str | None, ClickCommand | None, list[str]]":
        """Return the command that is called, by its name, and what is left for it."""
        meant = self.meant.get(args[0]) if args else None
        if meant is not None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {meant}?")
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else self.found[name], rest
