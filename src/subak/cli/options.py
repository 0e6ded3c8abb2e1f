"""Declares the options shared by `simulate` and `compare`, and builds a scenario from them."""
import functools
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, NamedTuple, get_origin

import msgspec
import typer

from subak.cli import completion
from subak.dates import when_reader
from subak.errors import InputError
from subak.experiment.moments import dated
from subak.experiment.scenario import WHENS, Scenario, read_scenario, refuse_unknown
from subak.federation.settings import Federation
from subak.quantities import read_seconds
from subak.resources import parse_amounts, parse_numbers
from subak.settings import DURATION, FILE, HEADINGS, INPUT, OUTPUT, WHEN, Setting, declared, kind_of, usual
from subak.toml_files import read_toml

OverwriteOption = Annotated[bool, typer.Option(
    "--overwrite", help="Replace the folder of --out if it exists and is one of subak's.", rich_help_panel=OUTPUT)]
SCENARIO_FILE = Annotated[Path | None, typer.Option(
    metavar=FILE, help="Read all settings from a scenario file, such as a run folder's scenario.toml; only --out may "
                       "be added.", rich_help_panel=INPUT, show_default=False)]
FLAG = "FLAG"  # the form of what is given or not, without a value


class Option(NamedTuple):
    """An option of a scenario, as it follows from a setting."""

    name: str  # of the setting
    setting: Setting
    of: type[Scenario | Federation]
    kind: object  # of one value: str, int, float, bool, Path, or a list of texts
    default: object

    def parameter(self, info: object | None = None, kind: object | None = None) -> inspect.Parameter:
        """Return it as Typer reads it; *info* and *kind* stand for its own."""
        annotation = Annotated[kind or self._given_as(), info or self.info()]  # type: ignore[valid-type]
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation,
                                 default=self.default if info is None else None)

    def info(self, *, as_list: bool = False) -> object:
        """Return what Typer is told of it; *as_list*: of several values, separated by commas."""
        setting = self.setting
        names = [setting.option or f"--{self.name.replace('_', '-')}"]
        if setting.form == "WORKLOAD":
            return typer.Argument(metavar=setting.form, help=setting.help, autocompletion=completion.workload)
        words = "|" in setting.form and "[" not in setting.form
        return typer.Option(
            *names, metavar=None if setting.form == FLAG else f"{setting.form},..." if as_list else setting.form,
            help=setting.help, rich_help_panel=setting.heading, show_default=setting.show_default and not as_list,
            parser=None if as_list else self.parser(names[0]),
            autocompletion=completion.words(setting.form.split("|")) if words else None,
            min=0 if self.kind is int and self.of is Scenario and not as_list else None)

    def parser(self, word: str) -> Callable[[str], object] | None:
        """Return what reads a text as a time, *word* first in its errors; None where the setting is none."""
        parsers = {DURATION: read_seconds, WHEN: when_reader(word)}
        return parsers.get(self.setting.form)

    def _given_as(self) -> object:
        return self.kind if self.setting.form == "WORKLOAD" or self.default is not None else self.kind | None  # type: ignore[operator]

    def read(self, value: object) -> object:
        """Return what the setting holds where the command line says *value*. Raises InputError for what it cannot."""
        kind = kind_of(self.of, self.name)
        if get_origin(kind) is dict:
            where = self.setting.option or f"--{self.name}"
            texts = value if isinstance(value, list) else [str(value)]
            return parse_amounts(texts) if self.name == "capacity" else parse_numbers(texts, where, EXAMPLES[self.name])
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            return read_toml(Path(str(value)), kind)
        return str(value) if isinstance(value, Path) else value


EXAMPLES = {"shares": "QUEUE=SHARE, such as research=0.25", "parameters": "NAME=VALUE, such as depth=4"}


def _option(name: str, setting: Setting, of: type[Scenario | Federation]) -> Option:
    kind, default = kind_of(of, name), usual(of)[name]
    if get_origin(kind) in (dict, list):
        return Option(name, setting, of, list[str], None)
    if setting.is_path or (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return Option(name, setting, of, Path, None)
    return Option(name, setting, of, kind, default if of is Scenario and default != "" else None)


def _options() -> dict[str, Option]:
    """Return the options of a scenario by the names of their settings, in the order of the help."""
    found = {}
    for name, setting in declared(Scenario).items():
        if setting.form:
            found[name] = _option(name, setting, Scenario)
        if name == "federation":
            found |= {each: _option(each, of, Federation) for each, of in declared(Federation).items() if of.form}
    places = ["workload", *HEADINGS, None]
    return dict(sorted(found.items(), key=lambda row: places.index(
        row[0] if row[0] == "workload" else row[1].setting.heading)))


OPTIONS = _options()
OPTION_WORDS = {name: f"--{name.replace('_', '-')}" for name in WHENS}
MACHINES = ("fleet", "machines", "capacity", "scale", "remove", "add_machines")
SCENARIO = "scenario"  # the option that stands for all others


class Given(dict[str, object]):
    """What a command was given of a scenario's options: those off their defaults, by the name of the setting."""

    @property
    def workload(self) -> str:
        """The workload that is named, or the one that is there without a name."""
        return str(self.get("workload", usual(Scenario)["workload"]))

    @property
    def scenario(self) -> Path | None:
        """The scenario file, where one is named."""
        path = self.get(SCENARIO)
        return path if isinstance(path, Path) else None

    @property
    def files(self) -> list[Path]:
        """What the command reads beside the workload; no result may be written over it."""
        return [value for value in self.values() if isinstance(value, Path)]


NOTHING_GIVEN = Given()


def takes_scenario(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of a scenario where a command has its parameter `given`; it gets them back in it, as one."""
    file = inspect.Parameter(SCENARIO, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=SCENARIO_FILE)
    return takes_options(command, [*(option.parameter() for option in OPTIONS.values()), file])


def takes_machines(command: Callable[..., None]) -> Callable[..., None]:
    """Do as `takes_scenario` with the options that say on which machines."""
    return takes_options(command, [OPTIONS[name].parameter() for name in MACHINES])


def takes_options(command: Callable[..., None], rows: Iterable[inspect.Parameter]) -> Callable[..., None]:
    """Do as `takes_scenario` with these *rows* of it; one that is an argument becomes the command's first."""
    rows = list(rows)
    first = [row for row in rows if row.name == "workload"]
    others = [row for row in rows if row.name != "workload"]
    own = list(inspect.signature(command).parameters.values())
    here = [parameter.name for parameter in own].index("given")

    @functools.wraps(command)
    def with_options(**values: object) -> None:
        said = {row.name: values.pop(row.name) for row in rows}
        command(given=Given({row.name: said[row.name] for row in rows if said[row.name] not in (row.default, [])}),
                **values)

    # what Typer reads
    parameters = [*first, *own[:here], *others, *own[here + 1:]]
    shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    with_options.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return with_options


def scenario_from(
    given: Given, schedulers: list[str] | None, seeds: list[int] | None, default_schedulers: list[str],
) -> Scenario:
    """Return the scenario of a file, or of the options; of schedulers and seeds, None means not given.

    Raises InputError for a mistake in either, or for both at once.
    """
    if given.scenario is not None:
        if schedulers is not None or seeds is not None or given.keys() != {SCENARIO}:
            raise InputError("--scenario: holds everything, so the other options must be left out")
        return read_scenario(given.scenario)
    names = default_schedulers if schedulers is None else schedulers
    refuse_unknown(names)
    return msgspec.structs.replace(Scenario(), **{
        **dated(_values(given, Scenario), OPTION_WORDS), "federation": federation_from(given), "schedulers": names,
        "seeds": seeds or [1]})


def machines_from(given: Given) -> Scenario:
    """Return a scenario that says no more than on which machines. Raises InputError for what no fleet could be."""
    return msgspec.structs.replace(Scenario(), **_values(given, Scenario))


def federation_from(given: Given) -> Federation:
    """Return the settings of a file with the options given before them.

    Raises InputError for a setting that does not exist or cannot be.
    """
    path = given.get("federation")
    known = read_toml(path, Federation) if isinstance(path, Path) else Federation()
    return msgspec.structs.replace(known, **_values(given, Federation))


def _values(given: Given, kind: type[Scenario | Federation]) -> dict[str, object]:
    """Return the settings of *kind* that options fill: all but those left at their defaults."""
    return {name: OPTIONS[name].read(value) for name, value in given.items()
            if name in OPTIONS and OPTIONS[name].of is kind}


def split_names(text: str) -> list[str]:
    """Return the names in a list separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]
