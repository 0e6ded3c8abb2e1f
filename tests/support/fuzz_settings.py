"""Bad files of settings: scenarios, federations, faults, trees of queues, LoTES, parameters of the generator."""
from collections.abc import Iterator, Mapping
from functools import cache

import msgspec

from fuzz_cases import NO_TEXT, Case, drawn, short
from subak.experiment.scenario import Scenario
from subak.federation.settings import Federation
from subak.measures.energy.settings import Energy
from subak.placement.lotes.settings import LotesSettings
from subak.queues.tree import TreeFile
from subak.simulator.failures.plan import FailurePlan
from subak.simulator.federated.fault_plan import FaultPlan
from subak.workload.google_like.parameters import Parameters

# What stands for a kind of file: its struct, a text in order, and the commands that read it (FILE is its name). All
# refuse it before they simulate, generate or write anything.
OUT = ("--out", "R")
MEGHA = ("--scheduler", "megha", "--local-masters", "2")
FILES: dict[str, tuple[type, str, tuple[tuple[str, ...], ...]]] = {
    "scenario": (Scenario, 'workload = "google2011"\n', (
        ("simulate", "--scenario", "f.toml"), ("compare", "--scenario", "f.toml", *OUT),
        ("simulate", "--scenario", "f.toml", *OUT))),
    "federation": (Federation, "heartbeat = 5\n", (
        ("simulate", "--scheduler", "megha", "--federation", "f.toml"),
        ("compare", "--schedulers", "megha,sparrow", "--federation", "f.toml", *OUT))),
    "faults": (FaultPlan, "loss = 0.1\n", (
        ("simulate", *MEGHA, "--faults", "f.toml"), ("compare", "--schedulers", "megha", "--local-masters", "2", "--faults",
                                                         "f.toml", *OUT))),
    "failures": (FailurePlan, "recorded = true\n", (
        ("simulate", *MEGHA, "--failures", "f.toml"), ("compare", "--schedulers", "megha", "--local-masters", "2",
                                                           "--failures", "f.toml", *OUT))),
    "energy": (Energy, '[[kind]]\nname = "a"\nwatts = [1, 2]\n', (
        ("simulate", "--energy", "f.toml"), ("compare", "--schedulers", "first-fit", "--energy", "f.toml", *OUT))),
    "queues": (TreeFile, 'capacity = { cpu = 2 }\n\n[[queue]]\nname = "a"\ndemand = { cpu = 1 }\n', (
        ("queues", "f.toml"), ("fair", "f.toml"), ("fair", "f.toml", *OUT), ("queues", "google2011", "--queues", "f.toml"),
        ("simulate", "--scheduler", "mch", "--queues", "f.toml"))),
    "lotes": (LotesSettings, "classes = 3\n", (
        ("simulate", "--scheduler", "lotes", "--lotes", "f.toml"), ("explain", "lotes", "google2011", "--lotes", "f.toml"),
        ("compare", "--schedulers", "lotes,greedy", "--lotes", "f.toml", *OUT))),
    "parameters": (Parameters, "dynamism = 0.1\n", (("generate", "--tasks", "10", "--parameters", "f.toml", *OUT),)),
}
ALL_ALIKE = '\nkind = [{ name = "a", watts = [1, 2] }]'
WRONG = {"text": '"some words"', "list": "[[]]", "table": "{ no = 1 }", "date": "1979-05-27", "nothing": ""}
NUMBERS = ("nan", "-nan", "-1", "-inf", "-0.001", "-9223372036854775808", "1e400", "99999999999999999999999")
# Values that no run could mean, beside those of another type: of each kind of file, by field.
RANGES: dict[str, Mapping[str, tuple[str, ...]]] = {
    "scenario": {
        "workload": ('"absent"', '""', '"a\\u0000b"', '"/dev/null"'), "workload_digest": ('"0123"',),
        "fleet": ('"absent"', '"a\\u0000b"', '"/dev/null"'), "fleet_digest": ('"0123"',),
        "machines": ("-1", "10000001", "9223372036854775807", "nan", "1.5", "1e3"),
        "capacity": ('{ cpu = "x" }', "{ cpu = nan }", "{ cpu = 1 }"), "schedulers": (
            "[]", '[""]', '["no-such"]', '["first-fit", "first-fit"]', '["first-fit+"]', '["first-fit+no-such"]',
            '["+"]', '["p.py:"]', '[".py:x"]', '["a\\u0000.py:x"]', "[1]", '["first-fit+fifo+mch"]', '["megha+backfill"]',
            '["mch+backfill"]', '["tetris+backfill"]', '["lotes+normalised"]'),
        "seeds": ("[]", "[-1]", "[9223372036854775808]", "[1, 1]", "[1.5]", '["x"]', "[nan]"),
        "interval": ("0", "nan", "-1", "inf", "-inf"), "until": ("-1", "nan", "-inf"),
        "reclaims_per_hour": ("-1", "nan", "inf", "5"), "hold_back_after": ("-1", "nan", "5"), "request_error": ("1", "-0.5", "nan", "inf", "2"),
        "usage_swing": ("1", "-0.5", "nan", "inf", "2"),
        "interference": ("1", "0.5", "-1", "nan", "inf", "101"),
        "estimates": ('"x"', '"factor=0"', "1"),
        "load": ("0", "-1", "nan", "inf", "101"), "only_queues": ('[""]', '["absent"]', '"all"', "[1]"),
        "slow_start": ("-0.1", "1.5", "nan", "inf"), "locality_wait": ("-1", "nan", "inf", "3"), "search_seconds": ("-1", "nan", "inf", "1e9", "5"),
        "search_moves": ("-1", "9223372036854775807", "1.5", "5"), "faults": ('"absent.toml"', '"f.toml"'),
        "failures": ('"absent.toml"', '"f.toml"', '"a\\u0000b"'),
        "queues": ('"absent.toml"', '"f.toml"', '"a\\u0000b"', '"/dev/null/x"'),
        "energy": ('"absent.toml"', '"f.toml"', '"a\\u0000b"', '"/dev/null/x"'),
        "federation": ("{ heartbeat = 5 }", "{ heartbeat = 0 }", "{ colour = 1 }"),
        "lotes": ("{ classes = 3 }", "{ classes = 65 }", "{ colour = 1 }"),
    },
    "federation": {
        **{name: (*NUMBERS, "1.5", "10001") for name in ("global_masters", "local_masters")},
        "preemptions_max": (*NUMBERS, "30001"), "probes_min": (*NUMBERS, "0", "1000001"),
        "probe_ratio": (*NUMBERS, "0", "inf"), "heartbeat": ("nan", "0", "-1", "1e-9", "-inf"),
        "retry": ("nan", "0", "-1"), "lease": ("nan", "0", "-1"), "delay": (*NUMBERS, "inf", "1000001"),
        "delay_spread": (*NUMBERS, "inf", "0.5"), "service_scale": (*NUMBERS, "inf"), "priority_seconds": (*NUMBERS, "inf"),
        "cutoff": ("nan", "-1", "-inf"), "short_share": (*NUMBERS, "1.01", "inf"),
        "steal_attempts": (*NUMBERS, "1000001"), "starvation_limit": (*NUMBERS, "1000001"),
        "push_ratio": (*NUMBERS, "inf", "1000001"), "report_tasks": (*NUMBERS, "0", "1000001"),
        "duration_weight": (*NUMBERS, "1.01", "inf"), "fair_weight": (*NUMBERS, "0", "1000001"),
        **{name: ('"x"', '""', '"OFF"') for name in ("delay_law", "updates", "fairness", "placement", "order", "queue_order",
                                                      "sampling", "service_profile")},
        "service": ("{ NOPE = 1 }", "{ SUBMIT = -1 }", "{ SUBMIT = nan }", "{ SUBMIT = 1e9 }", '{ SUBMIT = "x" }'),
        "part": ("{ NOPE = 1 }", "{ UPDATE = -1 }", "{ UPDATE = nan }", "{ UPDATE = inf }"),
        "shares": ("{ a = -1 }", "{ a = 2 }", "{ a = nan }", "{ a = 0.6, b = 0.6 }", "{ a = 0.5 }"),
        "masters_of": ("{ a = 99 }", "{ a = -1 }", "{ a = 0 }", "{ a = 1.5 }"), "standby": ("3", '"x"', "nan"),
    },
    "faults": {
        "seed": ("-1", "9223372036854775808", "1.5"), "late_max": ("nan", "-1", "inf", "1e10"),
        "spike_max": ("nan", "-1", "inf", "1e10"), "faults_until": ("nan", "-1", "1e10"),
        **{name: ("nan", "-0.1", "1.1", "inf") for name in ("loss", "heartbeat_loss", "duplication", "reordering", "spike")},
        "cut": ('[{}]', '[{ between = [] }]', '[{ between = ["workers"] }]', '[{ between = ["a", "b"] }]',
                '[{ between = ["workers", "workers", "workers"] }]',
                '[{ between = ["workers", "submitter"], from = -1 }]',
                '[{ between = ["workers", "submitter"], from = nan }]',
                '[{ between = ["workers", "submitter"], from = 5, until = 5 }]',
                '[{ between = ["workers", "submitter"], until = nan }]',
                '[{ between = ["workers", "global master 99"] }]', '[{ between = ["workers", "worker 99999999999999999999"] }]',
                '[{ between = ["workers", "worker -1"] }]', '[{ between = ["workers", "worker \\u0663"] }]',
                '[{ between = ["workers", "worker 1.5"] }]', '[{ between = ["workers", ""] }]', "[7]",
                '[{ between = ["standbys", "standby 0"] }]', '[{ between = ["workers", "submitter"], colour = 1 }]'),
        "crash": ("[{}]", '[{ role = "worker 0" }]', '[{ role = "submitter", at = 1 }]', '[{ role = "workers", at = 1 }]',
                  '[{ role = "worker 99999999", at = 1 }]', '[{ role = "worker 0", at = -1 }]',
                  '[{ role = "worker 0", at = nan }]', '[{ role = "worker 0", at = 1e10 }]', '[{ role = "worker 0", at = inf }]',
                  '[{ role = "worker 0", at = 1, restart_after = -1 }]', '[{ role = "standby 0", at = 1 }]',
                  '[{ role = "worker 0", at = 1, restart_after = nan }]', '[{ role = "local master 2", at = 1 }]',
                  '[{ role = "global master -0", at = 1 }]', '[{ role = "", at = 1 }]'),
    },
    "failures": {
        "seed": ("-1", "9223372036854775808", "1.5"), "recorded": ("3", '"x"', "nan"),
        "task": tuple(f"[{{ {text} }}]" for text in (
            *(f"{name} = {value}" for name in ("fail", "overrun", "cancel") for value in ("nan", "-0.1", "1.1", "inf")),
            *(f"{name} = {value}" for name in ("retries", "losses_max", "exit_code")
              for value in ("-1", "40000", "1.5", "nan", "99999999999999999999999")),
            *(f"{name} = {value}" for name in ("wait_max", "run_max") for value in ("0", "nan", "-1", "1e10", "-inf")),
            *(f"backoff = {value}" for value in ("nan", "-1", "inf", "1e10")), "exit_code = 0", 'fail_after = "x"',
            "fail_after = 0", "fail_after = 1.1", "fail_after = nan", "overrun = 0.5", "cancel = 0.5", "cancel_after = 1",
            "cancel = 0.5, cancel_after = nan", "fail = 0.6, overrun = 0.6, run_max = 1", 'queue = "absent"', 'user = ""',
            'job = "["', 'stage = "absent"', 'queue = "a\\u0000b"', "queue = 3", "colour = 1", 'gang = "x"')),
    },
    "energy": {
        "resource": ('"gpu"' + ALL_ALIKE, '"a\\u0000b"' + ALL_ALIKE),
        **{name: tuple(value + ALL_ALIKE for value in (
            "nan", "-inf", "1e10", '"absent.csv"', '"f.toml"', '""', '"."', '"/dev/null/x"', '"a\\u0000b"', "[]", "[[]]", "[[0]]",
            "[[0, nan]]", "[[0, 1], [0, 1]]", "[[5, 1], [2, 1]]", "[[nan, 1]]", "[[-inf, 1]]", "[[1e9, 1], [2e9, 1]]", "[7]",
            '[["x", 1]]', "{ value = 1 }")) for name in ("price", "carbon")},
        **{f"{name}_every": tuple(value + f"\n{name} = {table}" + ALL_ALIKE for value, table in (
            ("nan", "[[0, 1]]"), ("inf", "[[0, 1]]"), ("0", "[[0, 1]]"), ("-5", "[[0, 1]]"), ("5", "1"), ("5", "[[5, 1]]"),
            ("5", "[[-1, 1]]"), ("5", '"absent.csv"'))) for name in ("price", "carbon")},
        "kind": ("[]", "[{}]", "[7]", *(f'[{{ name = "a", {text} }}]' for text in (
            "watts = []", "watts = [1]", "watts = [1, -1]", "watts = [1, nan]", "watts = [1, inf]", "watts = [1, 1e7]", "watts = 3",
            'watts = ["x", 1]', *(f"watts = [1, 2], {more}" for more in (
                "empty = -1", "empty = nan", "empty = 1e7", "per_hour = -1", "per_hour = nan", "per_hour = inf", "shares = [0]",
                "shares = [1, 0]", "shares = [0, nan]", "shares = [0.1, 1]", "shares = [0, 2]", 'machine = "absent"', 'cluster = ""',
                'resource = "gpu"', "capacity = { gpu = 1 }", "capacity = { cpu = -1 }", "capacity = { cpu = nan }",
                'capacity = { cpu = "x" }', 'attributes = { absent = "x" }', "attributes = { platform = 1 }", "colour = 1"))))),
    },
    "queues": {
        "capacity": ("{ cpu = 0 }", "{ cpu = -1 }", "{ cpu = nan }", "{ cpu = inf }", '{ cpu = "x" }'),
        "queue": tuple(f"[{text}]" for text in (
            "{}", '{ name = "" }', '{ name = "/" }', '{ name = "a//b" }', '{ name = "/a" }', '{ name = "a\\nb" }',
            '{ name = "a", weight = 0 }', '{ name = "a", weight = -1 }', '{ name = "a", weight = nan }',
            '{ name = "a", weight = inf }', '{ name = "a", weight = 1e-10 }', '{ name = "a", weight = 1e10 }',
            '{ name = "a", limit = 0 }', '{ name = "a", limit = 1.5 }', '{ name = "a", limit = nan }',
            '{ name = "a", limit = -1 }', '{ name = "a", tasks = -1 }', '{ name = "a", tasks = 9223372036854775808 }',
            '{ name = "a", tasks = 1.5 }', '{ name = "a" }, { name = "a" }', '{ name = "a", parent = "a" }',
            '{ name = "a", parent = "b" }, { name = "b", parent = "a" }', '{ name = "a", parent = "z" }',
            '{ name = "a", parent = "b/" }', '{ name = "a/", parent = "b" }', '{ name = "a", colour = 1 }',
            '{ name = "a", demand = { cpu = -1 } }', '{ name = "a", demand = { cpu = nan } }',
            '{ name = "a", demand = { cpu = 3 } }', '{ name = "a", demand = { cpu = 0 } }',
            '{ name = "a", demand = { gpu = 1 } }', '{ name = "a", demand = { cpu = "x" } }',
            '{ name = "a", demand = { cpu = inf } }', '{ name = "a", tasks = 3 }, { name = "a/b" }', "7", '"a"')),
    },
    "lotes": {
        "classes": ("-1", "65", "1.5", "nan"), "window_start": ("-1", "nan", "1e30"),
        "window_seconds": ("-1", "0", "nan"), "bins_max": ("0", "-1", "10000001", "nan"),
        "constraint_sets_max": ("-1", "17"), "seed": ("-1", "2147483648", "1.5"), "sampled": ("-1", "1000001"),
        "replan_seconds": ("-1", "0.5", "nan"), "replan_window": ("-1", "0", "nan"), "standing": ("3", '"x"'),
        "usage": ("0", "1.5", "nan"), "local": ("3", '"x"'),
        **{name: ('"x"', '""', '"ALL"') for name in ("scaling", "pairs", "bins", "choice", "mix", "fallback", "order")},
    },
    "parameters": {
        "name": ('""',), "dynamism": (*NUMBERS, "0", "inf"), "gap_shape": (*NUMBERS, "1", "0", "inf"),
        "type": (*NUMBERS, "1.5", "inf"), "task_priority_rate": (*NUMBERS[:-1], "0", "inf"),
        "service_priority_rate": (*NUMBERS[:-1], "0", "inf"), "priority_levels": ("0", "1001", "-1", "1.5"),
        "gangs": (*NUMBERS, "1.5", "0.5"),
        **{name: ("{ mass = 0, disparity = 2 }", "{ mass = 5, disparity = 1 }", "{ mass = nan, disparity = 2 }",
                  "{ mass = 5, disparity = inf }", "{ mass = 5 }", "{ mass = -5, disparity = 2 }", "{}")
           for name in ("tasks", "services")},
        "resources": ("[]", '[{ name = "job" }]', '[{ name = "cpu", unit = 0 }]', '[{ name = "cpu" }, { name = "cpu" }]',
                      '[{ name = "cpu" }]', '[{ name = "a b" }, { name = "memory" }]', "[{}]"),
        "requests": ("[]", "[{ share = 1, amounts = { cpu = 1 } }]", "[{ share = 0, amounts = { cpu = 1, memory = 1 } }]",
                     "[{ share = -1, amounts = { cpu = 1, memory = 1 } }]", "[{ share = nan, amounts = { cpu = 1, memory = 1 } }]",
                     "[{ share = 1, amounts = { cpu = 0, memory = 0 } }]", "[{ share = 1, amounts = { cpu = -1, memory = 1 } }]",
                     "[{ share = 1, amounts = { cpu = nan, memory = 1 } }]", "[{ share = 1, amounts = { cpu = 1e9, memory = 1 } }]",
                     "[{ share = 1, amounts = {} }]", "[{}]",
                     "[{ share = inf, amounts = { cpu = 1, memory = 1 } }]",
                     "[{ share = 1, amounts = { cpu = 1, memory = 1, gpu = 1 } }]"),
        "jobs": ("{ single = 2 }", "{ single = nan }", "{ mass = 0 }", "{ disparity = 1 }", "{ most = 0 }",
                 "{ most = 2147483648 }", "{ colour = 1 }", "{ mass = inf }"),
        "priorities": ("{}", '{ tasks = { x = 1 }, services = { "1/0" = 1 } }', '{ tasks = {}, services = { "1/0" = 1 } }',
                       '{ tasks = { "1/0" = -1 }, services = { "1/0" = 1 } }', '{ tasks = { "01/0" = 1 }, services = { "1/0" = 1 } }',
                       '{ tasks = { "1/0" = 0 }, services = { "1/0" = 1 } }', '{ tasks = { "1/0" = nan }, services = { "1/0" = 1 } }',
                       '{ tasks = { "1/0" = 1 }, services = { "9999999999/0" = 1 } }',
                       '{ tasks = { "1/0" = inf }, services = { "1/0" = 1 } }'),
        "constraints": ("{}", "{ rate = 2, choices = [] }", "{ rate = 0.5, choices = [] }",
                        '{ rate = 0.5, choices = [[{ attribute = "", operator = "=" }, 0.5]] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "~" }, 0.5]] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "<", value = "x" }, 0.5]] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "=" }, 1.5]] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "=" }, 0.0]] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "=" }, 0.5]], met_by = [0.5, 0.5] }',
                        '{ rate = 0.5, choices = [[{ attribute = "a", operator = "=" }, 0.5]], met_by = [2.0] }',
                        '{ rate = nan, choices = [[{ attribute = "a", operator = "=" }, 0.5]] }'),
        "queues": ("{ users = 0 }", "{ users = 1000001 }", "{ exponent = -1 }", "{ exponent = nan }", "{ departments = 0 }",
                   "{ users = 2, departments = 3 }", "{ exponent = inf }"),
        "diurnal": ("{}", "{ amplitude = 1 }", "{ amplitude = -0.1 }", "{ amplitude = nan }", "{ amplitude = 0.5, period = 0 }",
                    "{ amplitude = 0.5, period = inf }", "{ amplitude = 0.5, phase = nan }"),
        "stages": ("{ share = 0.5 }", "{ share = 2 }", "{ share = 0.5, most = 1 }", "{ share = 0.5, most = 101 }",
                   "{ share = 0.5, fan_in = 2 }"),
        "failures": ("{ fail = 2 }", "{ fail = -1 }", "{ fail = 0.6, kill = 0.6 }", "{ kill = nan }"),
    },
}
NO_TOML = {
    "words": "these are words", "no-value": "a =\n", "no-key": "= 1\n", "open-list": "a = [\n", "open-text": 'a = "x\n',
    "twice": "a = 1\na = 2\n", "open-table": "[a\n", "escape": 'a = "\\q"\n', "control": 'a = "\x01"\n',
    "leading-zero": "a = 01\n", "no-time": "a = 25:00:00\n", "dotted": "a.b = 1\na = 2\n", "cr": "a = 1\rb = 2\r",
    "deep-lists": "a = " + "[" * 10_000 + "]" * 10_000 + "\n", "deep-tables": "[" + ".".join("a" * 3000) + "]\n",
    "deep-keys": ".".join("a" * 3000) + " = 1\n", "digits": "a = " + "9" * 5000 + "\n", "exponent": "a = 1e99999\n",
    "bom": "\ufeffa = 1\n", "underscore": "a = 1__0\n", "surrogate": 'a = "\\ud800"\n', "long-key": "k" * 5000 + " = 1\n",
}


def type_cases() -> Iterator[Case]:
    """Every field of every file with a value of another type, and fields that do not exist."""
    for kind, (struct, _, _) in FILES.items():
        for field in msgspec.structs.fields(struct):
            for what, value in WRONG.items():
                if _fits(field.encode_name, field.type, what):
                    continue
                yield _case(f"toml/{kind}/{field.encode_name}/{what}", kind, f"{field.encode_name} = {value}\n")
        for name in ("colour", "Workload", "heart_beat", "resource", "0"):
            yield _case(f"toml/{kind}/unknown/{name}", kind, f"{name} = 1\n")


def _fits(name: str, kind: object, what: str) -> bool:
    """Whether what is wrong for most fields is a value of this one."""
    text = str(kind)
    if what == "text":
        return "str" in text and "dict" not in text and "list" not in text and name not in ("schedulers", "capacity")
    return False


def range_cases() -> Iterator[Case]:
    """Values of the right type that no run could mean."""
    for kind, fields in RANGES.items():
        for name, values in fields.items():
            for value in values:
                yield _case(f"toml/{kind}/{name}/{short(value)}", kind, f"{name} = {value}\n")


def text_cases() -> Iterator[Case]:
    """Files that are no TOML, or cannot be read."""
    for kind, (_, text, commands) in FILES.items():
        for what, content in NO_TOML.items():
            yield _case(f"toml/{kind}/text/{what}", kind, content)
        for what, damage in NO_TEXT.items():
            if what not in ("nothing", "newlines", "html", "one-word-a-line"):
                yield _case(f"toml/{kind}/text/{what}", kind, damage(text.encode(), drawn(what)))
        for number, arguments in enumerate(commands):
            yield Case(f"toml/{kind}/absent/{number}", arguments)
            yield Case(f"toml/{kind}/folder/{number}", arguments, {"f.toml": None})
            yield Case(f"toml/{kind}/unreadable/{number}", arguments, {"f.toml": text}, ("f.toml",))


def _case(name: str, kind: str, text: str | bytes) -> Case:
    """Return a case of a file; what is left out of it says what is in order."""
    return Case(name, drawn(name).choice(_commands(kind)), {"f.toml": text})


@cache
def _commands(kind: str) -> tuple[tuple[str, ...], ...]:
    """The commands that read every field of a kind of file."""
    commands = FILES[kind][2]
    return tuple(each for each in commands if "google2011" not in each and "simulate" not in each) if (
        kind == "queues") else commands


def setting_cases() -> list[Case]:
    """All of them."""
    return [*type_cases(), *range_cases(), *text_cases()]
