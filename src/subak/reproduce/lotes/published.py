"""The claims of the LoTES paper (Tran and others), as bounds on measured numbers.

Section 5.4 gives words more than numbers; they get the mildest bound that still says it. Response time is the paper's
word for what is called wait time elsewhere, from ready to the first start; a "mean response" below is cited.
"""
from subak.reproduce.claims import UNEXPLAINED, Claim, Evidence, Why

MONTH, TRACE = "the month", "the trace"
BY_ORDER = ("in part it is the order: what arrives at once, and each class's queue, is served first come, first "
            "served; with the least expected work first, and nothing else changed, ")
REST = f"; the rest is {UNEXPLAINED}"
ORDER = Why(f"{BY_ORDER}the same bins wait a fraction of that, less than the most aligned machine with tasks in their "
            f"order{REST}", "figure why: lotes's order, bins in that order",
            (Evidence("why", "trace, lotes's order", 2.0), Evidence("why", "trace, bins in that order", 1.0)))
ORDER_TAIL = Why(f"{BY_ORDER}less than half as many wait for so long{REST}", "figure why: who waits for over an hour",
                 (Evidence("why", "trace, over 1 h in that order", most=0.5),))
LOAD_SAID, LOAD_SHOWN = "it goes by the load", "figure loads"
LOAD = Why(f"{LOAD_SAID}: at the least of several Tetris waits less than LoTES, at the most five times as long or "
           "longer", LOAD_SHOWN, (Evidence("loads", "tetris by lotes, least load", most=1.0),
                        Evidence("loads", "tetris by lotes, most load", least=5.0)))
TAIL = Why(LOAD_SAID, LOAD_SHOWN, (Evidence("loads", "tetris over 7 h, least load", most=0.005),
                                   Evidence("loads", "tetris over 7 h, most load", least=0.005)))
ALIKE = Why("the allocation LP has many optimal vertices: a solver is free in who serves whom",
            "the lines of the same program in another order",
            (Evidence("tables", "reversed lambda", 1 - 1e-9, 1 + 1e-9), Evidence("tables", "reversed classes", 1)))

CLAIMS = (
    Claim("tables", "lambda", "lambda* of Tables 1 and 2, by that of another implementation", least=0.9999,
          most=1.0001),
    Claim("tables", "classes alike", "|K^j|: configurations with as many classes as in Table 1", unit="of 10", least=10,
          why=ALIKE),
    Claim("tables", "classes most", "all but one configuration has one or two classes (the most of the others)",
          most=2, unit="classes", why=ALIKE),
    Claim("tables", "reversed lambda", "not in the paper: lambda* with configurations and classes in the opposite "
          "order, by that in the printed one"),
    Claim("tables", "reversed classes", "not in the paper: the configurations that then have another number of classes",
          unit="of 10"),
    Claim("tables", "bins", "the bins of all configurations are in the thousands", least=1_000, most=9_999, unit="bins",
          why=Why("Table 1's |K^j| do not allow thousands of non-dominated bins; Algorithm 1 as printed never sets "
                  "nextBin back and makes every step back a bin", "arithmetic: the next two lines",
                  (Evidence("tables", "bins allowed", most=999), Evidence("tables", "bins as printed", 1_000, 9_999)))),
    Claim("tables", "bins allowed", "not in the paper: the most non-dominated bins that Table 1's |K^j| allow",
          unit="bins"),
    Claim("tables", "bins as printed", "not in the paper: the bins that Algorithm 1 makes of them taken literally",
          unit="bins"),
    Claim("tables", "bins without", "without the allocation LP's zeros there can be millions", least=1e6, unit="bins",
          note="bins count only if no job more fits, which Algorithm 1 as printed does not see to"),
    Claim("tables", "seconds", "both programs and the bins take less than a minute", most=60.0, unit="s"),
    Claim("tables", "rounding", "rounding to whole machines costs less than 0.001 %", most=1e-5, unit="share",
          why=Why("the class of which fewest jobs run at once decides: one job of it is more than that",
                  "arithmetic: the next line", (Evidence("tables", "one job", least=1e-5),))),
    Claim("tables", "one job", "not in the paper: one job of that class, of those that run at once", unit="share"),
    *(Claim("classes", what, f"Table 2's classes: {words} (the most that one of four is off)", most=1.1)
      for what, words in (("of the tasks (share)", "their shares of the tasks"), ("cores (share)", "their cores"),
                          ("memory (share)", "their memory"), ("run time (s)", "their mean run times"))),
    Claim("6", "month greedy behind", f"{MONTH}: Greedy's mean response is 15 to 20 minutes longer than that of LoTES",
          least=900.0, most=1200.0, unit="s"),
    Claim("6", "month tetris by lotes", f"{MONTH}: Tetris's mean response is about ten times that of LoTES", least=5.0,
          most=20.0, why=LOAD),
    Claim("6", "month later tetris by lotes", f"{MONTH}, without the first day: the same", least=5.0, why=LOAD),
    Claim("6", "month first greedy", f"{MONTH}: in the first day Greedy does best (its mean by the best of the others)",
          most=1.0),
    Claim("6", "month days", f"{MONTH}: LoTES is as good as Tetris or better (days on which it is)", least=0.9,
          unit="share"),
    Claim("6", "trace greedy behind", f"{TRACE}: Greedy's mean response is 15 to 20 minutes longer than that of LoTES",
          least=900.0, most=1200.0, unit="s"),
    Claim("6", "trace tetris by lotes", f"{TRACE}: Tetris's mean response is about ten times that of LoTES", least=5.0,
          most=20.0, why=ORDER),
    Claim("6", "trace first greedy", f"{TRACE}: in the first hour Greedy does best (its mean by the best of the "
          "others)", most=1.0, note="of the month the paper says so of the first day"),
    Claim("6", "trace days", f"{TRACE}: LoTES is as good as Tetris or better (hours in which it is)", least=0.9,
          unit="share"),
    Claim("7", "month lotes over 1 h", f"{MONTH}: with LoTES less than 1 % wait for more than an hour", most=0.01,
          unit="share"),
    Claim("7", "month tetris over 7 h", f"{MONTH}: with Tetris about 1 % wait for more than 7 hours", least=0.005,
          most=0.02, unit="share", why=TAIL),
    Claim("7", "month greedy over 17 h", f"{MONTH}: with Greedy 1 % wait for more than 17 hours", least=0.005,
          most=0.02, unit="share"),
    Claim("7", "trace lotes over 1 h", f"{TRACE}: with LoTES less than 1 % wait for more than an hour", most=0.01,
          unit="share", why=ORDER_TAIL),
    Claim("7", "trace tetris over 7 h", f"{TRACE}: with Tetris about 1 % wait for more than 7 hours", least=0.005,
          most=0.02, unit="share"),
    Claim("7", "trace greedy over 17 h", f"{TRACE}: with Greedy 1 % wait for more than 17 hours", least=0.005,
          most=0.02, unit="share"),
    Claim("8", "month lotes empty", f"{MONTH}: with LoTES the queue is empty most of the time (of the intervals up to "
          "the last arrival)", least=0.5, unit="share"),
    Claim("8", "month greedy queued", f"{MONTH}: Greedy has queues at all points (intervals with one)", least=0.9,
          unit="share"),
    Claim("8", "trace lotes empty", f"{TRACE}: with LoTES the queue is empty most of the time", least=0.5,
          unit="share"),
    Claim("8", "trace greedy queued", f"{TRACE}: Greedy has queues at all points", least=0.9, unit="share"),
    *(Claim("8", f"{place} looked at", f"{words}: LoTES considers a restricted set of machines, Tetris all (machines "
            "that it looks at for an arriving task)", most=0.5, unit="share", note="restricted: no more than half")
      for place, words in (("month", MONTH), ("trace", TRACE))),
    *(Claim("why", f"{place}, {what}", f"not in the paper, {words}: {says}")
      for place, words in (("short month", MONTH), ("trace", TRACE)) for what, says in (
          ("alignment", "the mean with the first machine that fits, by that with the most aligned (backfill)"),
          ("order", "the mean with the most aligned machine in order of arrival, by that with the shortest first"),
          ("order without alignment", "the same with the first machine that fits"),
          ("bins", "the mean with the first machine that fits, by LoTES's"),
          ("all that tetris knows", "the mean with the most aligned machine, by Tetris's"),
          ("lotes's order", "the mean with LoTES, by that with LoTES which serves the least expected work first"),
          ("what lotes knows", "the mean with LoTES that serves the smallest first, by the same"),
          ("bins in that order", "the mean with the most aligned machine in order of arrival, by the same"),
          ("over 1 h in that order", "who waits for over an hour with LoTES which serves the least expected work "
           "first, by those with LoTES"))),
    *(Claim("loads", f"{what}, {load}", f"not in the paper: {says} at the {load}", unit=unit)
      for load in ("least load", "most load") for what, unit, says in (
          ("tetris by lotes", "times", "Tetris's mean response by LoTES's"),
          ("tetris over 7 h", "share", "with Tetris, who waits for more than 7 hours"))),
    Claim("options", "deficit", "not in the paper: mean wait time by deficit, by that with the roulette wheel"),
    Claim("options", "sampled", "not in the paper: the same with 32 machines looked at"),
    Claim("options", "replanned", "not in the paper: the same with a plan every 6 hours"),
    Claim("options", "replanned, changed", "not in the paper: the same where the mix of classes changes halfway"),
    *(Claim("mix", f"{place}, {name}", f"not in the paper, {place}: mean wait time with plans for {words}, by that "
            "with the mix known") for place in ("trace", "short month", "month whose mix changes") for name, words in (
                ("lotes, last hour", "the mix of the last hour"), ("lotes+predicted", "that of all before"))),
    Claim("usage", "gained", "not in the paper: LoTES's mean wait time where half of a request is not used, or held, "
          "in a part of each life, by that where all is held always"),
    Claim("usage", "bins for the mean", "not in the paper: the same with bins made for the mean use, by bins for all"),
    Claim("usage", "lost", "not in the paper: attempts that are lost then, because their use rises where none is free",
          unit="share"),
    Claim("locality", "wait", "not in the paper: LoTES's mean wait time with plans that know where the data are, by "
          "that without; far from its data a task takes twice as long"),
    Claim("locality", "slower", "not in the paper: its run times, by those near the data, without such plans"),
    Claim("locality", "slower local", "not in the paper: the same with them"),
    *(Claim("fairness", f"{place}, {what}", f"not in the paper, {place}: LoTES's mean wait time over the {what} under "
            "DRF, by that without") for place in ("trace", "short month") for what in ("tasks", "users")),
    Claim("federation", "bins", "not in the paper: mean allocation time of Megha's masters that place by bins, by that "
          "of those that take the first machine"),
    Claim("federation", "aligned-fit", "not in the paper: the same by Tetris's score"),
)
