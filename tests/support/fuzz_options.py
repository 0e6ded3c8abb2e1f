"""Bad command lines: every option of every command out of its type and its range, and options that contradict."""
import pathlib
from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_origin

import typer.main

from fuzz_cases import Case, drawn, short
from fuzz_tables import folders
from subak.cli import app as commands
from subak.cli.sweeps import SWEPT

# A call in order of each command, to which one bad option is added; W is the workload of fuzz_tables, x.tr a trace.
TRACE = "0 1 1 1\n"
TREE = 'capacity = { cpu = 2 }\n\n[[queue]]\nname = "a"\ndemand = { cpu = 1 }\n'
CALLS: dict[str, tuple[str, ...]] = {
    "simulate": ("W", "--out", "R"), "compare": ("W", "--schedulers", "first-fit", "--out", "R"),
    "experiment": ("W", "--schedulers", "first-fit", "--out", "R"), "merge": ("W", "--out", "R"),
    "size": ("W", "--objective", "wait.mean < 1s", "--seeds", "1", "--processes", "1", "--out", "R"), "report": ("W",),
    "explain": ("lotes", "W"), "convert": ("tr", "x.tr", "--out", "R"), "inspect": ("W",),
    "generate": ("--tasks", "3", "--out", "R"), "generate-mapreduce": ("--jobs", "2", "--out", "R"), "fit": ("W",),
    "tune": ("W", "--scheduler", "lotes", "--trials", "1", "--processes", "1", "--out", "R"),
    "schedulers": (), "fair": ("t.toml", "--out", "R"), "queues": ("W",), "torture": ("--seeds", "1"),
    "submit": ("x.tr",), "run": ("--queue", "q", "--", "true"), "list": (), "describe": ("g0-1",), "logs": ("g0-1.0",),
    "watch": ("g0-1",), "rerun": ("g0-1",), "cancel": ("g0-1",), "preempt": ("g0-1.0",), "machines": (), "cordon": ("m0",),
    "uncordon": ("m0",), "drain": ("m0",), "history": ("g0-1",), "apply": ("t.toml",),
    "whoami": (), "audit": (), "people add": ("ada", "--role", "reader"), "people list": (), "people revoke": ("ada",),
    "up": (), "down": (), "global-master": ("t.toml",), "local-master": ("t.toml",), "worker": ("t.toml",),
    "init": ("R", "--hosts", "h1=10.0.0.1,h2=10.0.0.2"), "doctor": ("W",), "ca init": ("R", "--name", "lab"),
    "ca issue": ("R", "worker", "w1", "--out", "R"), "ca show": ("x.tr",), "ca revoke": ("R", "x.tr"),
    "store adopt": ("t.toml",), "store check": ("W",), "store backup": ("W", "R"), "store restore": ("W", "R"),
    "reproduce google-like": ("--out", "R"), "reproduce all": ("--quick", "--out", "R"),
    "reproduce megha": ("--quick", "--out", "R"),
    "reproduce mch": ("--quick", "--out", "R"), "reproduce lotes": ("--quick", "--out", "R"),
    "reproduce dodoor": ("--quick", "--out", "R"), "reproduce hmhs": ("--quick", "--out", "R"),
}
INTEGERS = ("x", "1.5", "", "1e3", "nan", "inf", "0x10", "99999999999999999999999", "-99999999999999999999999", "1 2",
            "None", "-")
FLOATS = ("x", "", "nan", "-nan", "1,5", "1e", "0x10", "1.5q", "None", "-")
CHOICES = ("x", "", "TASK", "KEEP", "1")
PATHS = ("absent.toml", "absent/absent.toml", "n" * 300 + ".toml", "W/jobs.parquet", "/dev/null/x.toml")
NAMES = ("x", "", ",", "../x", "first_fit", "FIRST-FIT", "first-fit+", "+", "+mch", "first-fit+no-such", "no-such+mch",
         "first-fit+mch+fifo", "megha+backfill", "mch+backfill", "absent.py:x", "W:x", "W/jobs.parquet:x", ".py:x", "x.py:",
         "first-fit first-fit", "lotes+backfill", "tetris+backfill", "greedy+fifo", "n" * 300 + ".py:x")
DATES = ("2024-03-01", "2024-13-01", "2024-03-01T25:00", "0001-01-01", "9999-12-31T23:59Z", "2024-03-01T02:30+99:99", "2024-3-1")
NEGATIVE = ("-1", "-0.001", "-inf")
HUGE = ("1e308", "inf")
# Values of the right type that an option refuses, beside those above.
SPECIAL: dict[str, dict[str, tuple[str, ...]]] = {
    "simulate": {
        "scheduler": NAMES, "seed": ("-1", "9223372036854775808"), "machines": ("-1", "10000001", "5"),
        "capacity": ("cpu", "=1", "cpu=", "cpu=x", "cpu=1", "cpu=nan", "", "=", "cpu==1"), "interval": ("0", *NEGATIVE, *HUGE[1:]),
        "until": (*NEGATIVE, *DATES), "measure_from": (*NEGATIVE, *DATES), "measure_until": DATES, "slow_start": (*NEGATIVE, "1.01", *HUGE), "locality_wait": (*NEGATIVE, *HUGE, "3"), "search_seconds": (*NEGATIVE, *HUGE, "5"),
        "search_moves": ("-1", "5"), "global_masters": ("0", "-1", "10001", "3"), "local_masters": ("-1", "10001", "3"),
        "heartbeat": ("0", *NEGATIVE, "5"), "delay": (*NEGATIVE, *HUGE, "0.1"), "service_scale": (*NEGATIVE, *HUGE, "2"),
        "service_profile": ("python", "x", ""), "updates": ("full", "x", ""), "placement": ("bins", "x", ""), "preemption": ("strict", "x", ""),
        "shares": ("a", "a=", "a=x", "=1", "a=2", "a=nan", "a=-1", "a=0.5", ""), "reclaims_per_hour": (*NEGATIVE, *HUGE[1:], "5"),
        "hold_back_after": ("-1", "nan", "x", "5"), "answer_timeout": ("0", *NEGATIVE, *HUGE[1:], "5"),
        "request_error": (*NEGATIVE, "1", *HUGE), "usage_swing": (*NEGATIVE, "1", *HUGE), "interference": (*NEGATIVE, "1", "0.5", "100.5", *HUGE),
        "gangs": ("x", "", "Apart", "apart"),
        "estimates": ("x", "factor=0.5", "factor=x", "factor="),
        "scale": ("0", *NEGATIVE, *HUGE, "0.001", "1e9"), "load": ("0", *NEGATIVE, *HUGE, "0.001", "101"), "only_queues": ("", "absent", "/", "all/"),
        "remove": ("", "x", "0", "-1", "0%", "101%", "%", "1.5", "nan", "1e3", "99", "1:", "1:cpu", "1:gpu=1", "1:cpu=x", "1:cpu=nan", "1:cpu=-1",
                   "1:cpu=0.123", "1:cpu=1,cpu=1", "100%", "1%%"),
        "add_machines": ("", "x", "0:cpu=1,memory=1", "1", "1:", "1:cpu=1", "1:cpu=1,memory=1,gpu=1", "-1:cpu=1,memory=1", "1%:cpu=1,memory=1",
                         "1.5:cpu=1,memory=1", "1:cpu=nan,memory=1", "1:cpu=1e300,memory=1", "1:cpu=-1,memory=1", "99999999:cpu=1,memory=1", "1:cpu=1;memory=1"),
                "resample": ("x", "", "model", "Auto"), "parameters": ("x", "", "depth", "depth=x", "=1", "depth=3"),
        "objectives": ("", "wait", "wait.p95 < 60", "wait.p95 < -1s", "wait.p101 < 1s", "p95 < 1s", "wait.p95 < 60s for", "wait.mean < 1s for cell=a",
                       "wait.mean < nan"),
        "scenario": ("W/workload.toml",), "federation": ("W/workload.toml",),
        "faults": ("W/workload.toml",), "failures": ("W/workload.toml",), "queues": ("W/workload.toml",), "energy": ("W/workload.toml", "google"), "lotes": ("W/workload.toml",), "fleet": ("absent", "x.tr"),
        "workload": ("absent", "", "x.tr", "google", "n" * 300),
        "chunk": ("0", "-1"), "checkpoint": ("W", "x.tr", "W/jobs.parquet", "R", "R/c", "/dev/null/x", "n" * 300),
    },
    "compare": {
        "schedulers": (*NAMES, "first-fit,first-fit", "first-fit,x"),
        "seeds": ("x", "", "1-", "-1", "3-1", "1,,2", "1,", ",1", "1-2-3", "1.5", "\u00b2", "\u0663", "1e3", "1-99999", "1,1", "1-3,2",
                  "0-10000", "9223372036854775808", "99999999999999999999-99999999999999999999", " ", "1 2", "+1", "0x1"),
        "processes": ("0", "-1"),
    },
    "size": {
        "kinds": ("", "cpu", "cpu=x", "cpu=1,cpu=1", "cpu=nan", "cpu=-1", "cpu=inf", "cpu=1", "gpu=1", "cpu=1,memory=1,gpu=1", "cpu=1e300,memory=1"),
        "prices": ("-1", "nan", "inf", "1"), "mixes": ("W/workload.toml", "W", "absent"), "limit": ("0", "-1", "10000001"),
        "objectives": ("wait.mean > 1s", "wait.mean >= 1s")},
    "report": {"paths": ("absent", "x.tr", "", "n" * 300), "out": ("absent/x.html", "W", "x.tr/y.html", "n" * 300),
               "images": ("", "x.tr", "x.tr/y", "n" * 300), "formats": ("gif", "", ",", "svg,gif", "SVG", "png svg", "svg", "csv"),
               "tables": ("", "x.tr", "x.tr/y", "n" * 300), "baseline": ("", "absent", "n" * 300)},
    "explain": {"run": ("absent", "W", "x.tr", "", "./lotes", "n" * 300), "task": ("absent", "", "x.tr", "n" * 300),
                "fleet": ("absent", "x.tr"), "classes": ("-1", "65"), "lotes": ("W/workload.toml",)},
    "convert": {"trace_format": ("x", "", "TR", "csv"), "source": ("absent", "W", "n" * 300),
                "from_": (*NEGATIVE, "inf", "1e300", *DATES), "until": ("0", "-1", "-inf", *DATES), "model": ("block_bytes=1",),
                "map_": ("arrival=a,run_time=b", "x"), "separator": (",", "x"), "columns": ("a,b", "a,a", "a,,b"),
                "zone": ("Mars", "UTC", "+1"), "max_lost": ("x", "2", "-1", "nan", "5%%", "5%"),
                "topology": ("x.tr",), "map_slots": ("3", "0"), "reduce_slots": ("3", "-1"), "rack_local": ("0.5", "nan", "inf", "3"), "off_rack": ("0", "-1", "inf"),
                **{name: (value,) for name, value in (("resubmissions", "attempt"), ("censored", "drop"), ("fleet", "last"),
                                                      ("shuffle", "stage"), ("slots", "separate"), ("unfinished", "drop"),
                                                      ("computer", "one-machine"))}},
    "inspect": {"path": ("absent", "x.tr", "", "W/jobs.parquet", "n" * 300), "largest": ("-1", "1000000000000000000000"),
                "chart": ("c.pdf", "c", "absent/c.html", "", "x.tr/c.svg", "n" * 300 + ".svg")},
    "generate": {
        "tasks": ("0", "-1", "3000000000", "2147483648"), "seconds": ("0", *NEGATIVE, *HUGE, "5"), "load": ("0", *NEGATIVE, "inf"),
        "fleet": ("absent", "x.tr"), "machines": ("-1", "3", "100000000"), "capacity": ("cpu=1", "cpu", "=1", "cpu=x"),
        "parameters": ("W/workload.toml",), "seed": ("-1", "18446744073709551616"),
        "scale": ("0", *NEGATIVE, *HUGE, "0.000001"), "remove": ("", "x", "0", "101%", "99999", "1:gpu=1", "1:cpu=0.123"),
        "add_machines": ("", "x", "1", "0:cpu=1,memory=1", "1:cpu=1", "99999999:cpu=1,memory=1"),
        "dynamism": ("0", *NEGATIVE, *HUGE), "gap_shape": ("1", "0", *NEGATIVE, *HUGE), "type_": (*NEGATIVE, "1.5", *HUGE),
        "task_mass": ("0", *NEGATIVE, "inf"), "task_disparity": ("1", "0", *NEGATIVE, "inf"),
        "service_mass": ("0", *NEGATIVE, "inf"), "service_disparity": ("1", "0.5", *NEGATIVE, "inf"),
        "users": ("0", "-1", "1000001"), "diurnal": ("1", *NEGATIVE, *HUGE), "constraints": ("1.5", *NEGATIVE, *HUGE)},
    "generate-mapreduce": {
        "seed": ("-1", "18446744073709551616"), "jobs": ("0", "-1", "100000000"), "cluster": ("0", "7", "-1"),
        "map_machines": ("0", "-1", "300000000"), "reduce_machines": ("0", "-1", "300000000"),
        "slow_share": (*NEGATIVE, "1.5", *HUGE), "slots": ("0", "-1", "2147483648"), "gap": (*NEGATIVE, *HUGE),
        "map_output": (*NEGATIVE, *HUGE), "copy_rate": ("0", *NEGATIVE, "inf")},
    "fit": {"workload": ("absent", "x.tr", "", "n" * 300), "out": ("f.txt", "f", "absent/f.toml", "t.toml", ""),
            "chart": ("c.pdf", "c", "absent/c.html", ""), "request_classes": ("0", "-1")},
    "fair": {"tree": ("absent.toml", "W", "x.tr", "", "n" * 300)},
    "queues": {"source": ("absent.toml", "absent", "x.tr", "", "n" * 300), "weights": ("W/workload.toml",),
               "rows": ("0", "-1")},
    "torture": {"seeds": ("0", "-1"), "first": ("-1", "9223372036854775808"),
                "seed": ("-1", "1180591620717411303424", "9223372036854775808"), "config": ("one-task",),
                "states_max": ("0", "-1", "5")},
    "reproduce google-like": {"trace": ("absent", "x.tr", "W"), "seed": ("-1", "18446744073709551616")},
    "reproduce all": {"trace": ("absent", "x.tr", "W"), "seed": ("-1", "18446744073709551616")},
    "reproduce megha": {"trace": ("absent", "x.tr", "W"), "alibaba": ("absent",), "only": ("99", "x", "3,x", "", ","),
                        "seed": ("-1", "18446744073709551616")},
    "reproduce mch": {"trace": ("absent", "x.tr", "W"), "only": ("99", "x", "4,x", "", ","),
                      "seed": ("-1", "18446744073709551616")},
    "reproduce lotes": {"trace": ("absent", "x.tr", "W"), "only": ("99", "x", "6,x", "", ","),
                        "seed": ("-1", "18446744073709551616")},
    "reproduce dodoor": {"only": ("1", "x", "", ","), "seed": ("-1", "18446744073709551616")},
    "reproduce hmhs": {"jobs": ("absent", "x.tr"), "only": ("99", "x", "1,x", "", ",", "yahoo"),
                       "seed": ("-1", "18446744073709551616")},
}
# Of those that ask a live federation; what may be a name of something is refused for want of a token.
_OUTPUTS, _IDS, _MACHINES = ("x", "", "JSON", "csv"), ("x", "", "g0", "../g0-1", "g0-1.", "-1", "n" * 300), ("", " ", "[x]", "../m0", "n" * 300)
_WORDS = ("", "x", "\x1b[2J", "n" * 2000)
SPECIAL |= {
    **{word: {"output": _OUTPUTS} for word in ("submit", "list", "apply", "machines")},
    **{word: {"id": _IDS, "ids": _IDS, "output": _OUTPUTS} for word in ("logs", "watch", "rerun", "cancel", "preempt")},
    "history": {"id": _IDS, "output": _OUTPUTS, "since": ("", "-1h", "2", "2x", "nan", "tomorrow", "9" * 400 + "d")},
    **{word: {"names": _MACHINES, "output": _OUTPUTS} for word in ("cordon", "uncordon", "drain")},
}
SPECIAL["audit"] = {
    "since": ("", "-1h", "2", "2x", "nan", "tomorrow", "9" * 400 + "d"), "who": _WORDS, "about": _WORDS,
    "limit": ("0", "-1", "1001"), "output": _OUTPUTS}
SPECIAL["whoami"] = {"output": _OUTPUTS}
SPECIAL["people add"] = {
    "name": ("", " ", "../x", "-x", "n" * 300), "queue": _WORDS, "expires": ("", "-1h", "2x", "nan", "9" * 400 + "d"),
    "token_file": ("W", "x.tr"), "output": _OUTPUTS}
SPECIAL["people list"] = {"limit": ("0", "-1", "2147483648"), "output": _OUTPUTS}
SPECIAL["people revoke"] = {"names": ("", " ", "../x", "n" * 300), "output": _OUTPUTS}
SPECIAL["init"] = {
    "hosts": ("", ",", "h1,h1", "h1=10.0.0.1,h2=10.0.0.1", "../x", "ca", "h1=a b", "n" * 300),
    "global_masters": ("h9", "h1,h1", ","), "clusters": ("a", "a=", "=h1", "a=h9", "a=h1,a=h2", "a=h1+h1", "1=h1"),
    "name": ("1", "a b", "n" * 300), "queue": ("=", "q=x", "q=-1"), "order": ("", "x", "DRF"),
    "days": ("0", "-1", "3651")}
_NO_FOLDER = ("absent", "W", "W/jobs.parquet", "/dev/null/x", "n" * 300)
SPECIAL["init"]["folder"] = ("W", "W/jobs.parquet", "/dev/null/x", "n" * 300)
SPECIAL["doctor"] = {"folder": ("absent", "W/jobs.parquet", "/dev/null/x", "n" * 300)}
SPECIAL["ca show"] = {"file": _NO_FOLDER}
SPECIAL["ca revoke"] = {"folder": _NO_FOLDER, "file": _NO_FOLDER}
SPECIAL["ca init"] = {"folder": ("W/jobs.parquet", "/dev/null/x", "n" * 300), "name": ("", "1", "a b", "n" * 300)}
SPECIAL["ca issue"] = {"folder": _NO_FOLDER, "role": ("", "x", "WORKER"), "name": ("", "a b", "n" * 300), "host": ("a b", ""),
                       "days": ("0", "-1", "3651")}
SPECIAL["list"]["names"] = ("../x", "", "\x1b[2J")
SPECIAL["machines"]["words"] = ("remove", "x", "")
SPECIAL["describe"] = {"id": _MACHINES, "output": _OUTPUTS}
SPECIAL["up"] = {
    "folder": ("x.tr", "n" * 300), "clusters": ("0", "9"), "workers": ("0", "65"), "queue": ("a=x", "=", "a=-1", "a=nan"),
    "capacity": ("", "cpu", "cpu=x", "=1"), "order": ("x", ""), "preemption": ("x", ""), "port": ("0", "65001"),
}
SPECIAL["down"] = {"folder": ("absent", "W", "x.tr", "n" * 300)}
SPECIAL.update({word: {"file": ("absent", "W", "", "n" * 300)} for word in ("global-master", "local-master", "worker", "store adopt")})
SPECIAL.update({f"store {word}": {name: ("absent", "W", "n" * 300) for name in names} for word, names in {
    "check": ("folder",), "backup": ("folder", "to"), "restore": ("copy", "folder")}.items()})
SPECIAL["apply"]["file"] = SPECIAL["submit"]["files"] = ("absent", "W", "", "n" * 300)
SPECIAL["list"] |= {"queue": _WORDS, "name": _WORDS, "user": _WORDS, "limit": ("0", "-1", "2147483648")}
SPECIAL["cancel"]["queue"] = SPECIAL["machines"]["cluster"] = SPECIAL["submit"]["key"] = _WORDS
SPECIAL["logs"]["tail"] = ("-1", "9223372036854775808")
SPECIAL["run"] = {
    "command": ("", "\x00"), "queue": ("", "/", "a//b", "n" * 2000), "name": ("", " ", "n" * 300), "priority": ("2147483648",),
    "resources": ("cpu", "=1", "cpu=x", "memory=4gigs", "cpu=-1", "gpu=0.5", ""), "env": ("A", "=1", ""),
    "workdir": ("", "here", "n" * 5000), "time_limit": ("", "soon", "-1s", "0", "1y"),
    "array": ("1-3", "x", "0-", "0-9999999999", ""), "cpu": ("x", "-1", ""), "memory": ("4gigs", "-1", ""), "gpus": ("x", "-1", "0.5")}
SPECIAL["submit"] |= {name: values for name, values in SPECIAL["run"].items() if name != "command"}
SPECIAL["explain"]["output"] = SPECIAL["queues"]["output"] = _OUTPUTS
SPECIAL["size"] |= {name: (*values, *SPECIAL["size"].get(name, ())) for name, values in SPECIAL["simulate"].items() if name != "seed"}
SPECIAL["size"] |= {name: SPECIAL["compare"][name] for name in ("seeds", "processes")}
SPECIAL["tune"] = {
    "scheduler": NAMES, "seeds": SPECIAL["compare"]["seeds"], "held_out": SPECIAL["compare"]["seeds"], "processes": ("0", "-1"),
    "parameter": ("x", "", "=", "classes=", "classes=1", "classes=2:1", "classes=0:65", "classes=nan:1", "classes=1.5:2", "sampled=-1:2",
                  "choice=1:2", "classes=1:inf", "classes=1:2:3", "heartbeat"),
    "minimise": ("", "wait", "wait.p95 < 60s", "wait.p101", "p95", "wait.mean for", "wait.mean for cell=a", "fun.mean"),
    "trials": ("0", "-1", "100001"), "held_out_workload": ("absent", "x.tr", "n" * 300), "sampler_seed": ("-1", "2147483648"),
    **{name: values for name, values in SPECIAL["simulate"].items() if name not in ("scheduler", "seed")}}
SPECIAL["compare"] |= {name: values for name, values in SPECIAL["simulate"].items() if name not in ("scheduler", "seed")}
# Its options of a number or a word are lists of them.
SPECIAL["experiment"] = {name: tuple(value for value in values if "," not in value)
                         for name, values in SPECIAL["compare"].items() if name not in ("schedulers", "seeds")}
for _name, _kind in SWEPT.items():
    _typed = {float: FLOATS, int: INTEGERS}.get(_kind, ())
    SPECIAL["experiment"][_name] = (*(value for value in _typed if "," not in value), *SPECIAL["experiment"].get(_name, ()),
                                    *(("1,,2", "1,x", "1,1") if _typed else ()))
SPECIAL["experiment"] |= {
    "schedulers": SPECIAL["compare"]["schedulers"], "seeds": SPECIAL["compare"]["seeds"], "measures": ("x", "wait", "wait_time_mean,x"),
    "shard": ("0/3", "4/3", "3", "x", "", "1/0", "-1/3"), "on": ("slurm", "", "RAY", "ray:/", "ray ")}
SPECIAL["experiment"]["workload"] += ("absent.toml", "W/workload.toml", "t.toml", "x.tr.toml")
SPECIAL["merge"] = {"folders": ("absent", "W", "x.tr", "", "n" * 300)}
UNREAD = {"out", "overwrite", "version", "install_completion", "show_completion"}  # folders are tested by themselves
NO_PATHS = {("simulate", "checkpoint"), ("convert", "topology"), ("convert", "source"), ("reproduce megha", "alibaba")}
# Options that contradict each other, or go only with others.
CONFLICTS: tuple[tuple[str, ...], ...] = (
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=1"), ("simulate", "W", "--machines", "3", "--capacity", "gpu=1"),
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=1", "--capacity", "cpu=1"),
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=-1", "--capacity", "memory=1"),
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=1e10", "--capacity", "memory=1"),
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=nan", "--capacity", "memory=1"),
    ("simulate", "W", "--machines", "3", "--capacity", "cpu=inf", "--capacity", "memory=1"),
    ("simulate", "W", "--machines", "3", "--fleet", "W/fleet"), ("compare", "W", "--machines", "3", "--fleet", "W/fleet"),
    ("simulate", "W", "--scenario", "s.toml"), ("simulate", "--scenario", "s.toml", "--seed", "1"),
    ("simulate", "--scenario", "s.toml", "--scheduler", "first-fit"), ("simulate", "--scenario", "s.toml", "--until", "5"),
    ("simulate", "--scenario", "s.toml", "--machines", "3"), ("simulate", "--scenario", "s.toml", "--heartbeat", "5"),
    ("simulate", "--scenario", "s.toml", "--share", "a=1"), ("simulate", "--scenario", "s.toml", "--faults", "absent.toml"),
    ("simulate", "--scenario", "s.toml", "--queues", "t.toml"), ("simulate", "--scenario", "s.toml", "--reclaims-per-hour", "5"),
    ("simulate", "--scenario", "s.toml", "--request-error", "0.5"), ("simulate", "--scenario", "s.toml", "--slow-start", "0.5"),
    ("simulate", "--scenario", "s.toml", "--search-moves", "5"), ("simulate", "--scenario", "s.toml", "--interval", "5"),
    ("compare", "--scenario", "s.toml", "--seeds", "1-2"), ("compare", "--scenario", "s.toml", "--schedulers", "mch"),
    ("simulate", "--scenario", "two.toml"), ("simulate", "W", "--heartbeat", "5"), ("simulate", "W", "--share", "o/d/u=0.5"),
    ("simulate", "W", "--scheduler", "sparrow", "--heartbeat", "5"), ("simulate", "W", "--scheduler", "megha", "--share", "o/d/u=0.5"),
    ("simulate", "W", "--scheduler", "sparrow", "--local-masters", "1"), ("simulate", "W", "--faults", "f.toml"),
    ("simulate", "W", "--failures", "f.toml"), ("simulate", "W", "--scheduler", "pigeon", "--failures", "f.toml"),
    ("simulate", "--scenario", "s.toml", "--failures", "absent.toml"),
    ("simulate", "W", "--energy", "google2011"), ("simulate", "W", "--objective", "energy.total < 1kWh"),
    ("simulate", "W", "--scheduler", "recorded", "--energy", "google2011"),
    ("simulate", "W", "--scheduler", "sparrow", "--faults", "f.toml"), ("simulate", "W", "--scheduler", "megha", "--faults", "f.toml"),
    ("simulate", "W", "--scheduler", "megha", "--slow-start", "0.5"), ("simulate", "W", "--scheduler", "megha", "--request-error", "0.5"),
    ("simulate", "W", "--scheduler", "mch", "--request-error", "0.5"), ("simulate", "W", "--reclaims-per-hour", "5"),
    ("simulate", "W", "--scheduler", "megha", "--reclaims-per-hour", "5"), ("simulate", "W", "--lotes", "l.toml"),
    ("simulate", "W", "--search-seconds", "5"), ("simulate", "W", "--scheduler", "hmhs", "--search-moves", "5"),
    ("simulate", "W", "--scheduler", "megha", "--local-masters", "4"), ("simulate", "W", "--scheduler", "megha"),
    ("simulate", "W", "--scheduler", "pigeon"), ("simulate", "W", "--scheduler", "c-ch", "--fleet", "absent"),
    ("simulate", "W", "--scheduler", "megha", "--preemption", "strict", "--share", "a=0.5"),
    ("simulate", "W", "--scheduler", "megha", "--preemption", "strict", "--share", "o/d/u=0.6", "--share", "o/d/v=0.6"),
    ("simulate", "W", "--scheduler", "megha", "--preemption", "strict", "--share", "a=0.1", "--share", "a=0.1"),
    ("simulate", "W", "--scheduler", "megha", "--delay", "0.1", "--federation", "spread.toml"),
    ("compare", "W", "--schedulers", "first-fit,megha", "--faults", "f.toml"),
    ("compare", "W", "--schedulers", "first-fit,megha", "--request-error", "0.5"),
    ("compare", "W", "--schedulers", "first-fit,sparrow", "--heartbeat", "5"),
    ("compare", "W", "--schedulers", "first-fit,hmhs,megha", "--slow-start", "0.5"),
    ("size", "W", "--out", "R"), ("size", "W", "--machines", "3", "--capacity", "cpu=1", "--capacity", "memory=1", "--objective", "wait.mean < 1s"),
    ("size", "W", "--kind", "cpu=1,memory=1", "--fleet", "W/fleet", "--objective", "wait.mean < 1s"),
    ("size", "W", "--kind", "cpu=1,memory=1", "--scale", "2", "--objective", "wait.mean < 1s"),
    ("size", "W", "--kind", "cpu=1,memory=1", "--price", "1", "--price", "2", "--objective", "wait.mean < 1s"),
    ("size", "W", "--price", "1", "--objective", "wait.mean < 1s"), ("size", "--scenario", "s.toml"),
    ("size", "--scenario", "s.toml", "--seeds", "1-3"), ("size", "W", "--objective", "wait.mean < 1s for queue=absent", "--processes", "1"),
    ("size", "W", "--kind", "cpu=1,memory=1", "--mix", "mix.toml", "--objective", "wait.mean < 1s"),
    ("simulate", "--scenario", "s.toml", "--scale", "2"), ("simulate", "--scenario", "s.toml", "--remove", "1"),
    ("report", "R", "S"), ("report", "W", "W", "--out", "both.html"),
    ("generate", "--out", "R"), ("generate", "--tasks", "3", "--seconds", "3", "--out", "R"),
    ("generate", "--tasks", "3", "--load", "0.5", "--dynamism", "1", "--out", "R"),
    ("generate", "--tasks", "3", "--machines", "3", "--out", "R"), ("generate", "--tasks", "3", "--capacity", "cpu=1", "--out", "R"),
    ("generate", "--tasks", "3", "--machines", "3", "--capacity", "slot=1", "--out", "R"),
    ("generate", "--tasks", "3", "--machines", "3", "--fleet", "W/fleet", "--out", "R"),
    ("generate", "--tasks", "3", "--capacity", "cpu=1", "--fleet", "W/fleet", "--out", "R"),
    ("generate", "--tasks", "3", "--fleet", "W/fleet", "--load", "0.5", "--out", "R"),
    ("generate", "--tasks", "3", "--machines", "3", "--capacity", "cpu=0", "--capacity", "memory=0", "--load", "0.5", "--out", "R"),
    ("generate-mapreduce", "--cluster", "2", "--slow-share", "0.5", "--out", "R"),
    ("generate-mapreduce", "--jobs", "100000", "--map-machines", "10000", "--out", "R"),
    ("generate-mapreduce", "--jobs", "1000000", "--map-machines", "1", "--reduce-machines", "1", "--workload", "hybrid", "--out", "R"),
    ("torture", "--seeds", "5", "--seed", "3"), ("torture", "--first", "5", "--seed", "3"),
    ("torture", "--seed", "3", "--coverage"), ("torture", "--seed", "3", "--no-shrink"),
    ("torture", "--exhaustive", "--seed", "3"), ("torture", "--exhaustive", "--seeds", "3"),
    ("torture", "--exhaustive", "--config", "x"), ("torture", "--exhaustive", "--config", ""),
    ("torture", "--exhaustive", "--coverage"), ("torture", "--states-max", "3"),
    ("queues", "t.toml", "--queues", "t.toml"), ("explain", "R", "0", "W"), ("explain", "R", "0", "--classes", "3"),
    ("explain", "W", "0"), ("explain", "W/fleet", "0"), ("explain", "lotes", "T"), ("explain", "lotes", "W", "W"),
    ("convert", "swim", "x.tr", "--model", "a", "--out", "R"), ("convert", "swim", "x.tr", "--model", "a=1", "--out", "R"),
    ("convert", "swim", "x.tr", "--model", "block_bytes=0", "--out", "R"), ("convert", "swim", "x.tr", "--model", "=1", "--out", "R"),
    ("convert", "swim", "x.tr", "--model", "block_bytes=nan", "--out", "R"),
    ("convert", "swim", "x.tr", "--model", "reduces_max=1.5", "--out", "R"),
    ("convert", "swim", "x.tr", "--model", "block_bytes=1", "--model", "block_bytes=1", "--out", "R"),
    ("convert", "tr", "x.tr", "--from", "5", "--until", "5", "--out", "R"), ("convert", "tr", "x.tr", "--from", "5", "--out", "R"),
    ("convert", "tr", "x.tr", "--from", "nan", "--out", "R"), ("convert", "tr", "x.tr", "--batch", "--out", "R"),
    ("convert", "rumen", "x.tr", "--slots", "separate", "--out", "R"), ("convert", "tr", "x.tr"),
    ("convert", "tr", "x.tr", "--out", "R", "--preview"), ("convert", "tr", "x.tr", "--gang", "--out", "R"), ("convert", "table", "x.tr", "--out", "R"),
    *(("convert", "table", "x.csv", "--out", "R", "--map", text) for text in (
        "", "a", "=a", "arrival=", "arrival=a", "run_time=b", "arrival=a,run_time=b,run_time=b", "arrival=a,run_time=b,end=b",
        "arrival=a,end=b", "arrival=no,run_time=b", "arrival=a[x],run_time=b", "arrival=a,run_time=b[epoch]", "arrival=a,run_time=b[",
        "arrival=a,run_time=b,job=a[s]", "arrival=a,run_time=b,cpu=a[cores/tasks]", "arrival=a,run_time=b,user=a[/tasks]",
        "arrival=a,run_time=b,the cpu=a", "arrival=a,run_time=b,cluster=a", "arrival=a[epoch],start=b[s],run_time=b", "arrival==x,run_time=b",
        "arrival=a[iso],run_time=b", "arrival=a,run_time=b[hms]", "arrival=a run_time=b")),
    *(("convert", "table", "x.csv", "--map", "arrival=a,run_time=b", "--separator", sign, "--out", "R") for sign in (":", ",,", ";", " ")),
    ("convert", "google2011", "T", "--batch", "--out", "R"), ("convert", "rumen", "x.tr", "--map-slots", "0", "--out", "R"),
    ("convert", "rumen", "x.tr", "--map-slots", "2147483648", "--out", "R"),
    ("experiment", "s.toml", "--seeds", "1", "--out", "R"), ("experiment", "W", "--shard", "0/3", "--out", "R"), ("experiment", "W"),
    ("experiment", "W", "--out", "R", "--on", "ray", "--processes", "2"), ("experiment", "W", "--heartbeat", "1,5", "--out", "R"),
    ("experiment", "W", "--machines", "3,4", "--capacity", "cpu=1", "--out", "R"), ("merge", "W", "W", "--out", "R"),
    ("reproduce", "nope"), ("reproduce", "megha", "--only", "heartbeat,99"), ("--nope",), ("nope",), ("simulat",), ("",), ("-",),
    ("simulate", "W", "W"), ("--", "nope"), ("simulate", "--", "--seed"), ("@x.tr",),
    ("fit", "W", "--censored", "account", "--censored", "never"),
)
BESIDE = {"x.tr": TRACE, "x.csv": "a,b\n1,2\n3,4\n", "t.toml": TREE, "s.toml": 'workload = "W"\n', "two.toml": 'workload = "W"\nseeds = [1, 2]\n',
          "f.toml": 'workload = "W"\n', "l.toml": "classes = 3\n",
          "mix.toml": "[[machines]]\ncount = 3\ncapacity = { cpu = 1, memory = 1 }\nprice = 2.0\n", "spread.toml": "delay_spread = 0.5\n"}


@cache
def parameters() -> dict[str, list[Any]]:
    """The arguments and options of every command that runs something."""
    found: dict[str, list[Any]] = {}
    waiting = [("", typer.main.get_command(commands.app))]
    while waiting:
        name, command = waiting.pop()
        if hasattr(command, "commands"):
            waiting += [(f"{name} {key}".strip(), each) for key, each in command.commands.items()]
        else:
            found[name] = command.params
    return found


def values_of(command: str, parameter: Any) -> tuple[str, ...]:  # noqa: PLR0911  (a line a type)
    """Return what a parameter refuses, by its type and by itself."""
    kind = parameter.type_descriptor.annotation
    kinds = {each for each in (kind, *get_args(kind)) if isinstance(each, type)}
    special = SPECIAL.get(command, {}).get(parameter.name, ())
    if get_origin(kind) is list or list in kinds or any(get_origin(each) is list for each in get_args(kind)):
        return special
    if bool in kinds:
        return ()
    if float in kinds:
        return (*FLOATS, *special)
    if int in kinds:
        return (*INTEGERS, *special)
    if pathlib.Path in kinds:
        reads = parameter.param_type_name == "option" and "out" not in parameter.name and parameter.name not in ("chart", "images")
        return (*(PATHS if reads and (command, parameter.name) not in NO_PATHS else ()), *special)
    if any(isinstance(each, str) for each in get_args(kind)):
        return (*CHOICES, *special)
    return special


def option_cases() -> list[Case]:
    """All of them."""
    return [*value_cases(), *form_cases(), *conflict_cases()]


def value_cases() -> Iterator[Case]:
    """One option, or argument, with one bad value."""
    for command, call in CALLS.items():
        for parameter in parameters()[command]:
            for value in values_of(command, parameter):
                yield _case(f"option/{command}/{parameter.name}/{short(value)}", _with(command, call, parameter, value))
            if parameter.is_bool_flag if parameter.param_type_name == "option" else False:
                yield _case(f"option/{command}/{parameter.name}/with-a-value",
                            (*command.split(), *call, f"{parameter.opts[0]}=yes"))


def _with(command: str, call: tuple[str, ...], parameter: Any, value: str) -> tuple[str, ...]:
    """Return the call with a parameter as given; an argument stands where it belongs."""
    if parameter.param_type_name == "option":
        kept = list(call)
        if parameter.opts[0] in kept:
            place = kept.index(parameter.opts[0])
            del kept[place : place + 2]
        return (*command.split(), *kept, f"{parameter.opts[0]}={value}")
    arguments = [each for each in parameters()[command] if each.param_type_name == "argument"]
    place = [each.name for each in arguments].index(parameter.name)
    return (*command.split(), *call[:place], value, *call[place + 1:])


def form_cases() -> Iterator[Case]:
    """Unknown options, options without their values, too many arguments, too few."""
    for command, call in CALLS.items():
        words = command.split()
        for what, more in {"unknown": ("--nope",), "unknown-short": ("-z",), "misspelt": ("--overwrit",),
                           "too-many": ("a", "b", "c", "d")}.items():
            yield _case(f"form/{command}/{what}", (*words, *call, *more))
        for parameter in parameters()[command]:
            if parameter.param_type_name == "option" and not parameter.is_bool_flag:
                yield _case(f"form/{command}/{parameter.name}/no-value", (*words, *call, parameter.opts[0]))
        if any(each.required for each in parameters()[command]):
            yield _case(f"form/{command}/nothing", tuple(words))


def conflict_cases() -> Iterator[Case]:
    """Options that contradict each other."""
    for arguments in CONFLICTS:
        yield _case(f"conflict/{short('_'.join(arguments))}/{'_'.join(map(short, arguments[1:]))[:80]}", arguments)


def _case(name: str, arguments: tuple[str, ...]) -> Case:
    assert drawn  # the names of the cases are all that is drawn from
    return Case(name, arguments, {**folders(), **BESIDE})
