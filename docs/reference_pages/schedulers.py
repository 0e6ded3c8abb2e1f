"""The page of schedulers: names, options, what each knows, settings of LoTES."""
import inspect

from reference_pages.tables import struct_rows, table
from subak.federation.settings import NETWORK_SETTINGS, supported_by
from subak.placement.lotes.settings import LotesSettings
from subak.placement.schedulers import KNOWLEDGE, OPTIONS, SCHEDULERS
from subak.simulator.engine import estimates


def schedulers() -> list[str]:
    listed = [(f"`{each.name}`", each.summary, each.knows,
               ", ".join(f"`{option}`" for option in sorted(each.accepts)) or "none")
              for each in SCHEDULERS.values() if not each.architecture]
    return [
        "# Schedulers\n", *table(("name", "what it does", "knows", "options"), listed),
        "Options follow the name behind plus signs, in any order: `first-fit+backfill+shortest-first`.\n",
        *table(("option", "what it changes"), [(f"`{name}`", text) for name, text in OPTIONS.items()]),
        "Federations, whose settings are on [a page of their own](federations.md):\n",
        *table(("name", "what it does", "knows", "settings of its own"), [
            (f"`{each.name}`", each.summary, each.knows,
             ", ".join(f"`{name}`" for name in supported_by(each) if name not in NETWORK_SETTINGS))
            for each in SCHEDULERS.values() if each.architecture]),
        "## Who knows what\n",
        "A scheduler that knows run times in advance has an advantage that few real ones have. What each *knows* of "
        "them, at most:\n",
        *table(("knows", "what that is"), list(KNOWLEDGE.items())),
        "hawk and pigeon know nothing without a `cutoff`; megha and central, with the placement `bins`, class means; a "
        "policy of your own, run times if it names `tasks.estimate`. `knows` in a run's `summary.json` says it of the "
        "run, with how well the scheduler was told, by `--estimates`:\n",
        inspect.cleandoc(estimates.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "A policy of your own, in a file, is named `FILE.py:NAME`, with options behind plus signs if it was made with "
        "`@policy`. [The Python interface](../api.md#policies-of-your-own) has what it may use.\n",
    ]


def lotes() -> list[str]:
    """Return the settings of LoTES's plan."""
    return [
        "## LoTES: settings\n",
        "For `--lotes` and `subak explain lotes --settings`, a key each.\n",
        *table(("key", "type", "default", "what it is"), struct_rows(LotesSettings)),
    ]
