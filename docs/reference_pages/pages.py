"""All pages of the reference: their files, and the index that leads to them."""
from collections.abc import Iterator

from reference_pages.commands import command_pages
from reference_pages.federations import federations, messages_page
from reference_pages.files import energy, folders, format_pages, run_folder, scenario_file, study_file, workload_folder
from reference_pages.schedulers import lotes, schedulers
from reference_pages.tables import table
from reference_pages.tests import tests_page
from subak import exit_codes

HEAD = """# Reference

Every page of the reference is made from the program: `make docs` writes them, and a test checks that they are current.
They have what only the program knows: commands and their options, schedulers, settings, messages, the columns of every
file. [The Python interface](../api.md) has a page of its own, and so have [our words and the field's](../glossary.md).
"""
EXIT_CODES = f"""# Exit codes

{exit_codes.table()}

An error is one line on standard error: the rule that was broken, where, and by what value. A comparison keeps the runs
that succeeded. Results go to standard output, remarks and errors to standard error. A folder appears under its name
only when it is whole.
"""


def reference() -> dict[str, str]:
    """Return the text of each page by its path in docs/reference."""
    return {path: text for _, path, _, text in listed()} | {"index.md": index()}


def titles() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return title and path of the pages of each group, for the site's menu."""
    found: dict[str, list[tuple[str, str]]] = {}
    for group, path, _, text in listed():
        found.setdefault(group, []).append((text.split("\n", 1)[0].removeprefix("# ").strip("`"), path))
    return list(found.items())


def listed() -> Iterator[tuple[str, str, str, str]]:
    """Yield group, path, what it is in a line, and text of each page."""
    for name, (says, text) in command_pages().items():
        yield "Commands", f"commands/{name}.md", says, text
    yield "Commands", "exit-codes.md", "What a command's exit code says.", EXIT_CODES
    settings = {
        "schedulers.md": ("Names, options, what each knows of the future, settings of LoTES.",
                          [*schedulers(), *lotes()]),
        "federations.md": ("Settings, why requests are refused, plans of faults and of failures.", federations()),
        "messages.md": ("What masters and workers say to each other, how long it takes, and what it does.",
                        messages_page()),
        "energy.md": ("What machines draw, cost and emit.", energy())}
    for path, (says, parts) in settings.items():
        yield "Schedulers and settings", path, says, "\n".join(parts)
    files = {
        "workload-folder.md": ("Jobs, stages and tasks; machines and how they change.", workload_folder()),
        "run-folder.md": ("Tasks, timeline, attempts, queues and the summary of a run.", run_folder()),
        "folders.md": ("Several runs side by side, and studies.", folders()),
        "scenario-file.md": ("Every key of a run, or of several.", scenario_file()),
        "study-file.md": ("How a study is written.", study_file())}
    for path, (says, parts) in files.items():
        yield "Files", path, says, "\n".join(parts)
    for name, (says, text) in format_pages().items():
        yield "Trace formats", f"formats/{name}.md", says, text
    yield "For who changes Subak", "tests.md", "Which tests to run for what you changed.", tests_page()


def index() -> str:
    """Return the page that leads to all others."""
    parts = [HEAD]
    groups: dict[str, list[tuple[str, str]]] = {}
    for group, path, says, text in listed():
        heading = text.split("\n", 1)[0].removeprefix("# ")
        groups.setdefault(group, []).append((f"[{heading}]({path})", says))
    for group, rows in groups.items():
        parts += [f"## {group}\n", *table(("page", "what it has"), rows)]
    return "\n".join(parts)
