"""The pages of federations: settings, reasons, faults and failures; messages, and what they do."""
import inspect

from reference_pages.protocol import protocol
from reference_pages.tables import struct_rows, table
from subak.federation import messages
from subak.federation.messages import PROFILES, Profile
from subak.federation.settings import Federation, supported_by
from subak.placement.schedulers import SCHEDULERS
from subak.simulator import federated_results
from subak.simulator.failures import plan as failure_plan
from subak.simulator.federated import fault_plan


def federations() -> list[str]:
    """Return the settings, the reasons, and how faults and failures are planned."""
    settings = zip(Federation.__struct_fields__, struct_rows(Federation), strict=True)
    return [
        "# Federations\n",
        "Settings go into a TOML file for `--federation`, a key each, or under `[federation]` of a scenario; those "
        "that are varied most are options of `subak simulate` and `subak compare`. A setting that none of the "
        "schedulers supports is refused. Every run writes those it used into its `summary.json`, with the service "
        "times.\n",
        "## Settings\n",
        *table(("key", "type", "default", "what it is", "supported by"),
               [(*row, supporters(name)) for name, row in settings]),
        "## Reasons\n",
        "Why a request is refused, or an attempt ends:\n",
        *table(("number", "reason"), [(str(number), text) for number, text in enumerate(messages.REASONS) if text]),
        "Why a task waits at the end of a federated run, beside what every machine lacks:\n",
        *table(("reason",), [(text,) for text in waiting_words()]),
        "## Faults\n",
        inspect.cleandoc(fault_plan.__doc__ or "").split("\n\n", 1)[1] + "\n",
        "## Failures\n",
        "With `--failures`, tasks of megha and central end in other ways than by finishing, whatever schedules them.\n",
        inspect.cleandoc(failure_plan.__doc__ or "").split("\n\n", 1)[1] + "\n",
    ]


def messages_page() -> list[str]:
    """Return the kinds of messages with their service times, and what they do."""
    costs = [(f"`{name}`", messages.ROLES[messages.HANDLER[number]], "yes" if messages.CROSSES[number] else "no",
              *(service_of(name, each) for each in PROFILES.values()), messages.SAYS[name])
             for number, name in enumerate(messages.KINDS)]
    return [
        "# Messages\n",
        "A role serves one message at a time; what it answers leaves when the service is over. A message that crosses "
        "the network is under way for the delay. How long a service takes depends on the `service_profile`: whether "
        "masters are compiled, as `bench/handlers.py` measures them, each message with the call that hands it over, or "
        "run in plain Python. `service` and `part` are tables by kind, and come before it: "
        "`service = {LAUNCH = 0.0001}`.\n",
        *table(("kind", "handled by", "crosses the network", *(f"{name}, µs" for name in PROFILES), "what it says"),
               costs),
        *protocol(),
    ]


def waiting_words() -> list[str]:
    words = [*federated_results.OF_PHASE.values(), *(value for name, value in vars(federated_results).items()
                                                     if name.isupper() and isinstance(value, str))]
    return [f"{text.strip()} ..." if text.endswith(" ") else text for text in words]


def supporters(setting: str) -> str:
    names = [each.name for each in SCHEDULERS.values() if setting in supported_by(each)]
    federated = [each for each in SCHEDULERS.values() if each.architecture]
    return "all" if len(names) == len(federated) else ", ".join(names)


def service_of(kind: str, profile: Profile) -> str:
    part = f" + {1e6 * profile.part[kind]:g} for each entry" if kind in profile.part else ""
    return f"{1e6 * profile.service.get(kind, 0.0):g}{part}"
