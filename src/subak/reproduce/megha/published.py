"""The claims of the Megha paper (Thiyyakat, Kalambur, Sitaram), as bounds on measured numbers.

A claim in words alone gets the mildest bound that still says it; the rule beside it says which.
"""
from subak.reproduce.claims import Claim, Evidence, Why

HERE, HTTP = "service x 1, messages 0.5 ms", "service x 1, messages 5 ms"
DEMANDS = ("moderate demand", "high demand")  # of the google_19-like tasks, see Scale
SLOW_MESSAGES = "the paper's communication holds HTTP and RabbitMQ; here it is messages of 0.5 ms each"
# of figure why: what masters are charged for that is free in Figs. 8 and 9
DEAR_UPDATES, LARGE_VIEWS = "updates of 10 µs a machine", "placing in proportion to the machines"
SENDING = "sending updates, 10 µs a machine"


def by_http(number: str, least: float | None = None, most: float | None = None) -> Why:
    """Return slow messages as the reason, if a number of Fig. 7 is within the claim's bounds with them."""
    return Why(SLOW_MESSAGES, "the same claim with messages of 5 ms, Fig. 7",
               (Evidence("7", f"{number}, {HTTP}", least, most),))


CLAIMS = (
    Claim("3", "megha max", "Megha's allocation time is consistently less than 1.5 s", most=1.5, unit="s"),
    Claim("3", "sparrow max", "Sparrow's runs into tens of seconds (max: 100 s)", least=10.0, most=1000.0, unit="s"),
    Claim("4", "megha median", "Megha's median is in the order of tens of milliseconds", least=0.01, most=0.1, unit="s",
          why=by_http("median", 0.01, 0.1)),
    Claim("4", "median ratio", "Sparrow's median is smaller than Megha's (Megha's / Sparrow's)", least=1.0,
          why=Why("Sparrow asks before it sends a task: 4 messages of 0.5 ms, against 3 and the masters' work of Megha",
                  "arithmetic: the next two lines",
                  (Evidence("4", "sparrow median", 0.002, 0.0021), Evidence("4", "megha median", 0.0015, 0.002)))),
    Claim("4", "sparrow median", "not in the paper: Sparrow's median", unit="s"),
    Claim("4", "median ratio", "Megha's median is comparable to Sparrow's (Megha's / Sparrow's)", most=10.0),
    Claim("4", "p99 ratio", "Megha's 99th percentile is two orders of magnitude better (Sparrow's / Megha's)",
          least=100.0),
    Claim("5", "peak demand", "Fig. 5 draws the slots wanted over time, without numbers in the text", unit="slots",
          note="chosen here: 95 % of the workers at the worst instant"),
    Claim("6", "ratio 1", "the centralized case is very high (mean, centralized / decentralized, the least of the "
          "sizes)", least=10.0, note="1 µs for each machine of an update",
          why=Why("one master keeps up with the arrivals when a machine of an update costs 1 µs", "the next line",
                  (Evidence("6", "ratio 10", least=10.0),))),
    Claim("6", "ratio 10", "the same, with slower masters", least=10.0, note="10 µs for each machine of an update",
          caveat=Why("the one master cannot keep up with the arrivals, so this says how long the run was",
                     "the next line", (Evidence("6", "longer 10", least=2.0),))),
    Claim("6", "longer 10", "not in the paper: how many times as long the last tenth of the tasks waits as the first, "
          "centralized, with these masters"),
    Claim("7", f"communication, {HERE}", "communication contributes over 90 %", least=0.9, unit="share",
          why=by_http("communication", least=0.9)),
    Claim("7", f"processing, {HERE}", "processing at LMs and GMs contributes less than 3 %", most=0.03, unit="share",
          why=by_http("processing", most=0.03)),
    Claim("7", f"framework queueing, {HERE}", "framework queueing is about 7 %", least=0.04, most=0.1, unit="share",
          why=Why("a task waits as long for its master whatever messages cost: beside 0.5 ms that is more",
                  "the next line, and the same claim with messages of 5 ms",
                  (Evidence("7", "queued by messages", 0.9, 1.1),
                   Evidence("7", f"framework queueing, {HTTP}", 0.04, 0.1)))),
    Claim("7", "queued by messages", "not in the paper: framework queueing's median, with messages of 5 ms by that "
          "with 0.5 ms"),
    Claim("7", f"communication, {HTTP}", "communication over 90 %, with messages of 5 ms", least=0.9, unit="share"),
    Claim("7", f"processing, {HTTP}", "processing less than 3 %, with messages of 5 ms", most=0.03, unit="share"),
    Claim("7", f"framework queueing, {HTTP}", "framework queueing about 7 %, with messages of 5 ms", least=0.04,
          most=0.1, unit="share"),
    Claim("7", f"median, {HTTP}", "Megha's median in the order of tens of milliseconds, with messages of 5 ms",
          least=0.01, most=0.1, unit="s"),
    Claim("8", "growth, full", "allocation time increases with the number of workers (mean, largest / second size)",
          least=1.05, note="the smallest size is left out, see the next line but two",
          why=Why("updates that cost 1 µs a machine, once a heartbeat, are too little for the mean; with ten times as "
                  "much it holds", f"figure why: {DEAR_UPDATES}", (Evidence("why", f"mean, {DEAR_UPDATES}", 1.05),))),
    Claim("8", "median growth, full", "the same of the median", least=1.05,
          why=Why("to search a larger view costs a master no more here; where placing takes time in proportion to the "
                  "machines it holds", f"figure why: {LARGE_VIEWS}",
                  (Evidence("why", f"median, {LARGE_VIEWS}", 1.05),))),
    Claim("8", "tail growth, full", "the same of the 99.99th percentile", least=1.05),
    Claim("8", "constraints", "not in the paper: what constraints cost in the smallest data center, where few machines "
          "meet them (mean, with / without)"),
    Claim("8", "whole growth, full", "not in the paper: the mean, largest / smallest"),
    Claim("8", "tail growth, changes", "not in the paper: the 99.99th percentile when updates carry only what changed"),
    Claim("9", "more global", "more GMs, up to the LMs' number, decrease it (mean ratio, more / fewer)", most=1.0),
    Claim("9", "more local", "more LMs decrease it (mean ratio, more / fewer)", most=1.0),
    Claim("9", "beyond", "more GMs than LMs increase it slightly (mean ratio, more / as many)", least=1.0,
          why=Why("sending costs a local master nothing here; where it takes 10 µs for each machine and each global "
                  "master that is told, it holds", f"figure why: {SENDING}",
                  (Evidence("why", f"mean, {SENDING}", 1.0),))),
    *(Claim("10", f"falls, {demand}", f"allocation time increases with a decrease in size, {demand} (mean, the least "
            "ratio of a size to the next larger)", least=1.0) for demand in DEMANDS),
    *(Claim("11", f"{name}, {demand}", f"{name} increase with a decrease in size, {demand} (the least ratio of a size "
            "to the next larger)", least=1.0,
            note="a task may be preempted any number of times, as in Algorithm 2")
      for demand in DEMANDS for name in ("preemptions", "preemption attempts", "repartitions")),
    Claim("why", "mean, as in Fig. 8", "not in the paper: the mean, largest / second size, with the costs of Fig. 8"),
    Claim("why", f"mean, {DEAR_UPDATES}", f"the same, charged for {DEAR_UPDATES}"),
    Claim("why", f"median, {LARGE_VIEWS}", f"the same of the median, charged for {LARGE_VIEWS}"),
    Claim("why", "mean, as in Fig. 9", "not in the paper: the mean, most global masters / as many as local ones, with "
          "the costs of Fig. 9"),
    Claim("why", f"mean, {SENDING}", f"the same, charged for {SENDING}"),
)
