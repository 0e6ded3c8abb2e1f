"""A page for each command, with its commands, arguments and options."""
from typing import Any

import typer.main

from reference_pages.tables import prose, table
from subak.cli import app as command_line


def command_pages() -> dict[str, tuple[str, str]]:
    """Return the text of the page of each command and what it is in a line, by name; first that of `subak` itself."""
    group: Any = typer.main.get_command(command_line.app)
    context = group.context_class(group, info_name="subak")
    pages = {"subak": (summary(group), "\n".join(section(group, context, "#")))}
    for name, command in group.commands.items():
        inner = command.context_class(command, info_name=name, parent=context)
        parts = section(command, inner, "#")
        for own, each in getattr(command, "commands", {}).items():
            parts += section(each, each.context_class(each, info_name=own, parent=inner), "##")
        pages[name] = summary(command), "\n".join(parts)
    return pages


def section(command: Any, context: Any, heading: str) -> list[str]:
    return [f"{heading} `{context.command_path}`\n", prose(command.help), *parameters(command, context)]


def summary(command: Any) -> str:
    """Return the first sentence of a command's help."""
    return " ".join(prose(command.help).split("\n\n")[0].split())


def parameters(command: Any, context: Any) -> list[str]:
    rows = []
    for parameter in [each for each in command.get_params(context) if not each.hidden]:
        argument = parameter.param_type_name == "argument"
        name = parameter.metavar or parameter.name.upper() if argument else ", ".join(parameter.opts)
        takes = "" if argument or parameter.is_bool_flag else parameter.metavar or parameter.display_type(context)
        rows.append((f"`{name} {takes}`".replace(" `", "`"), help_of(parameter)))
    return table(("argument or option", "what it does"), rows)


def help_of(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split())
    shown = parameter.show_default and parameter.default not in (None, False, ())
    if parameter.required:
        return f"{text} Required."
    return f"{text} [default: {parameter.default}]" if shown and "[default:" not in text else text
