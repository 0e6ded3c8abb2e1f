"""`subak schedulers`: lists the schedulers."""
from rich.table import Table

from subak.federation.settings import NETWORK_SETTINGS, supported_by
from subak.placement.schedulers import KNOWLEDGE, OPTIONS, PLACEMENT_OPTIONS, SCHEDULERS, Scheduler
from subak.report.console import PIPED_WIDTH, Console

TABLE_WIDTH = 80  # characters, where no terminal says another number


def schedulers() -> None:
    """List the schedulers, the options that may follow their names, and the settings of federations."""
    console = Console()
    console.width = min(console.width, PIPED_WIDTH if console.is_terminal else TABLE_WIDTH)
    central = [each for each in SCHEDULERS.values() if not each.architecture]
    federated = [each for each in SCHEDULERS.values() if each.architecture]
    table = Table("Scheduler", "What it does", "Knows", "Options", title="Schedulers that see everything at once",
                  title_justify="left")
    for scheduler in central:
        table.add_row(scheduler.name, scheduler.summary, scheduler.knows, accepted(scheduler))
    console.print(table)
    options = Table("Option", "What it changes", title="Options, behind a plus sign: first-fit+backfill, best-fit+mch",
                    title_justify="left")
    for name, text in OPTIONS.items():
        options.add_row(name, text)
    console.print(options)
    federations = Table("Scheduler", "What it does", "Knows", "Settings of its own",
                        title="Federations: several masters, messages that take time", title_justify="left")
    for scheduler in federated:
        federations.add_row(scheduler.name, scheduler.summary, scheduler.knows, ", ".join(own_settings(scheduler)))
    console.print(federations)
    console.print(f"All federations also support {', '.join(NETWORK_SETTINGS)}; settings go into a file for "
                  "--federation, and docs/reference/federations.md says what each means.")
    console.print("Knows, of run times: " + "; ".join(f"{name}, {text}" for name, text in KNOWLEDGE.items())
                  + ". --estimates says how well.")
    console.print("Without --scheduler it is first-fit, the plainest: strict order, so that nothing is assumed. "
                  "--scheduler easy is Slurm's backfill.")
    console.print("A policy of your own: FILE.py:NAME, or pipe:COMMAND for one in a process (see docs/policies.md).")


def accepted(scheduler: Scheduler) -> str:
    """Return the options of a scheduler, those that it shares with all placements in a word."""
    if scheduler.accepts >= PLACEMENT_OPTIONS:
        return "a way to backfill, or a fair order; any other order"
    return ", ".join(sorted(scheduler.accepts)) or "none"


def own_settings(scheduler: Scheduler) -> list[str]:
    """Return the settings that not every federation has."""
    return [name for name in supported_by(scheduler) if name not in NETWORK_SETTINGS]
