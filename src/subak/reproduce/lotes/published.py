"""What the LoTES paper claims (Tran and others), as bounds on numbers that are measured here.

Section 5.4 gives words more than numbers; `note` says which bound was chosen for them. Response time is the paper's
word for what is called wait time elsewhere, from ready to the first start; a "mean response" below is cited.
"""
from subak.reproduce.claims import Claim

MONTH, TRACE = "the month", "the trace"
BURST = "what asks for 1.16 of the machines at time 0 waits for the first of it to end, whoever dispatches"
OVERLOAD = ("the trace is an hour and a half that asks for more than there is: who serves short tasks first has the "
            "least mean, and Tetris does; see the figure of what makes the difference")
KNIFE = ("it goes by the load alone: a queue of Greedy's is one machine's, and over a whole month its mean grows from "
         "seconds to hours within a few points of load (the short months of the figure of loads end before that)")

CLAIMS = (
    Claim("tables", "lambda", "lambda* of Tables 1 and 2, by that of another implementation", least=0.9999, most=1.0001,
          note="bounds: 0.01 %"),
    Claim("tables", "classes alike", "|K^j|: configurations with as many classes as in Table 1", unit="of 10", least=10,
          differs="the allocation LP has many optimal vertices: a solver is free in who serves whom"),
    Claim("tables", "classes most", "all but one configuration has one or two classes (the most of the others)",
          most=2, unit="classes", note="bound: 2"),
    Claim("tables", "bins", "the bins of all configurations are in the thousands", least=1_000, most=9_999, unit="bins",
          differs="which classes share a configuration decides, see |K^j|"),
    Claim("tables", "bins without", "without the allocation LP's zeros there can be millions", least=1e6, unit="bins",
          differs="with four classes and these capacities; bins count only if no job more fits, which Algorithm 1 as "
                  "printed does not see to"),
    Claim("tables", "seconds", "both programs and the bins take less than a minute", most=60.0, unit="s",
          note="bound: 60 s"),
    Claim("tables", "rounding", "rounding to whole machines costs less than 0.001 %", most=1e-5, unit="share",
          differs="Google's rare configurations have 1 to 5 machines, so that rounding moves whole bins"),
    Claim("6", "month greedy behind", f"{MONTH}: Greedy's mean response is 15 to 20 minutes longer than that of LoTES",
          least=900.0, most=1200.0, unit="s", differs=KNIFE),
    Claim("6", "month tetris by lotes", f"{MONTH}: Tetris's mean response is about ten times that of LoTES", least=5.0,
          most=20.0, note="bounds: 5 to 20", differs="it goes by the load, and grows with the month's length"),
    Claim("6", "month later tetris by lotes", f"{MONTH}, without the first day: the same", least=5.0,
          note="bound: 5 or more", differs="see the figure of loads"),
    Claim("6", "month first greedy", f"{MONTH}: in the first day Greedy does best (its mean by the best of the others)",
          most=1.0, differs=f"{BURST}; Greedy binds tasks to machines then, and others overtake them"),
    Claim("6", "month days", f"{MONTH}: LoTES is as good as Tetris or better (days on which it is)", least=0.9,
          unit="share", note="bound: nine of ten"),
    Claim("6", "trace greedy behind", f"{TRACE}: Greedy's mean response is 15 to 20 minutes longer than that of LoTES",
          least=900.0, most=1200.0, unit="s", differs=OVERLOAD),
    Claim("6", "trace tetris by lotes", f"{TRACE}: Tetris's mean response is about ten times that of LoTES", least=5.0,
          most=20.0, note="bounds: 5 to 20", differs=OVERLOAD),
    Claim("7", "month lotes over 1 h", f"{MONTH}: with LoTES less than 1 % wait for more than an hour", most=0.01,
          unit="share"),
    Claim("7", "month tetris over 7 h", f"{MONTH}: with Tetris about 1 % wait for more than 7 hours", least=0.005,
          most=0.02, unit="share", note="bounds: 0.5 to 2 %", differs="it goes by the load"),
    Claim("7", "month greedy over 17 h", f"{MONTH}: with Greedy 1 % wait for more than 17 hours", least=0.005,
          most=0.02, unit="share", note="bounds: 0.5 to 2 %", differs=KNIFE),
    Claim("7", "trace lotes over 1 h", f"{TRACE}: with LoTES less than 1 % wait for more than an hour", most=0.01,
          unit="share", differs=OVERLOAD),
    Claim("8", "month lotes empty", f"{MONTH}: with LoTES the queue is empty most of the time", least=0.5, unit="share",
          note="bound: half"),
    Claim("8", "month greedy queued", f"{MONTH}: Greedy has queues at all points (share of the time with one)",
          least=0.9, unit="share", note="bound: nine tenths", differs="a queue of Greedy is one machine's: it ends"),
    Claim("why", "packing", "LoTES is ahead of Tetris by packing for what is to come (Tetris's mean by that of its "
          "packing alone, shortest first left out; the month)", unit="times"),
    Claim("why", "shortest", "not in the paper: the same on the trace"),
    Claim("options", "deficit", "not in the paper: mean wait time by deficit, by that with the roulette wheel"),
    Claim("options", "sampled", "not in the paper: the same with 32 machines looked at"),
    Claim("options", "replanned", "not in the paper: the same with a plan every 6 hours"),
    Claim("options", "replanned, changed", "not in the paper: the same where the mix of classes changes halfway"),
    Claim("federation", "bins", "not in the paper: mean allocation time of Megha's masters that place by bins, by that "
          "of those that take the first machine"),
    Claim("federation", "aligned-fit", "not in the paper: the same by Tetris's score"),
)
