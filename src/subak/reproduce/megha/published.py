"""What the Megha paper claims (Thiyyakat, Kalambur, Sitaram), as bounds on numbers that are measured here.

A claim in words alone gets the mildest bound that still says it; `note` then says which bound was chosen.
"""
from subak.reproduce.claims import Claim

HERE, HTTP = "service x 1, messages 0.5 ms", "service x 1, messages 5 ms"
FAST_MASTERS = "masters take some 0.2 ms a task here, theirs were Python processes behind HTTP"
DEMANDS = ("moderate demand", "high demand")  # of the google_19-like tasks, see Scale
COMMUNICATION = "the paper's communication holds HTTP and RabbitMQ; here it is messages of 0.5 ms each"

CLAIMS = (
    Claim("3", "megha max", "Megha's allocation time is consistently less than 1.5 s", most=1.5, unit="s",
          differs="at the highest demand some tasks wait for a worker to become free"),
    Claim("3", "sparrow max", "Sparrow's runs into tens of seconds (max: 100 s)", least=10.0, most=1000.0, unit="s",
          differs="the wait depends on the run times of the tasks queued before, and those of the sample are not known",
          note="bounds: 10 to 1,000 s"),
    Claim("4", "megha median", "Megha's median is in the order of tens of milliseconds", least=0.01, most=0.1, unit="s",
          differs=FAST_MASTERS + ": a task needs 3 messages of 0.5 ms"),
    Claim("4", "median ratio", "Sparrow's median is smaller than Megha's (Megha's / Sparrow's)", least=1.0,
          differs="Sparrow asks before it sends a task: 4 messages of 0.5 ms against Megha's 3, whose masters are fast "
                  "here; and a part of its tasks waits at busy workers"),
    Claim("4", "median ratio", "Megha's median is comparable to Sparrow's (Megha's / Sparrow's)", most=10.0,
          note="bound: 10 times"),
    Claim("4", "p99 ratio", "Megha's 99th percentile is two orders of magnitude better (Sparrow's / Megha's)",
          least=100.0),
    Claim("5", "peak demand", "Fig. 5 draws the slots wanted over time, without numbers in the text", unit="slots",
          note="chosen here: 95 % of the workers at the worst instant"),
    Claim("6", "ratio 1", "the centralized case is very high (mean, centralized / decentralized, the least of the "
          "sizes)", least=10.0, differs="one master keeps up with the arrivals when a machine of an update costs 1 µs",
          note="1 µs for each machine of an update; bound: 10 times"),
    Claim("6", "ratio 10", "the same, with slower masters", least=10.0, differs="as above",
          note="10 µs for each machine of an update; bound: 10 times"),
    Claim("7", f"communication, {HERE}", "communication contributes over 90 %", least=0.9, unit="share",
          differs=f"{COMMUNICATION}; beside it, taking in whole states shows"),
    Claim("7", f"processing, {HERE}", "processing at LMs and GMs contributes less than 3 %", most=0.03, unit="share",
          differs="some 0.2 ms of service on a task's path, beside 1.5 ms on the network: " + COMMUNICATION),
    Claim("7", f"framework queueing, {HERE}", "framework queueing is about 7 %", least=0.04, most=0.1, unit="share",
          differs="a task waits behind its job's other tasks, and while its masters take in whole states: it depends "
                  "on how many arrive together", note="bounds: 4 to 10 %"),
    Claim("7", f"communication, {HTTP}", "communication over 90 %, with messages of 5 ms", least=0.9, unit="share"),
    Claim("7", f"processing, {HTTP}", "processing less than 3 %, with messages of 5 ms", most=0.03, unit="share"),
    Claim("7", f"framework queueing, {HTTP}", "framework queueing about 7 %, with messages of 5 ms", least=0.04,
          most=0.1, unit="share", differs="masters are fast here", note="bounds: 4 to 10 %"),
    Claim("7", f"median, {HTTP}", "Megha's median in the order of tens of milliseconds, with messages of 5 ms",
          least=0.01, most=0.1, unit="s"),
    Claim("8", "growth, full", "allocation time increases with the number of workers (mean, largest / smallest)",
          least=1.05,
          differs="in the smallest ones constrained tasks wait for the few machines that meet their constraints"),
    Claim("8", "median growth, full", "the same of the median", least=1.05,
          differs="the cost of updates is queueing, and the median task meets none"),
    Claim("8", "median growth, changes", "not in the paper: the same when updates carry only what changed"),
    Claim("9", "more global", "more GMs, up to the LMs' number, decrease it (mean ratio, more / fewer)", most=1.0),
    Claim("9", "more local", "more LMs decrease it (mean ratio, more / fewer)", most=1.0),
    Claim("9", "beyond", "more GMs than LMs increase it slightly (mean ratio, more / as many)", least=1.0,
          differs="a local master serves a request in less than 0.1 ms here: it keeps up with all global masters"),
    *(Claim("10", f"falls, {demand}", f"allocation time increases with a decrease in size, {demand} (mean, the least "
            "ratio of a size to the next larger)", least=1.0) for demand in DEMANDS),
    *(Claim("11", f"{name}, {demand}", f"{name} increase with a decrease in size, {demand}", least=1.0, differs=reason)
      for demand in DEMANDS for name, reason in (
          ("preemptions", "where several times more is wanted than there is, most tasks that run may not be preempted "
                          "again, or belong to queues within their shares"),
          ("preemption attempts", "a refused attempt is repeated at once, so the number hangs on few tasks"),
          ("repartitions", "attempts to preempt on other masters' partitions count among them"))),
)
