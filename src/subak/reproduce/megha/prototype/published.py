"""The claims of the Megha paper on its prototype (section VI-F), as bounds on measured numbers."""
from subak.reproduce.claims import Claim

KEY = "prototype"
PUBLISHED_S = {"google_19": 3.32, "alibaba": 2.15}  # median execution delays

CLAIMS = (
    *(Claim(KEY, f"higher, {name}", f"allocation times of the prototype are higher than simulated ones, {name}-like "
            "(median, live / simulated)", least=1.0) for name in PUBLISHED_S),
    *(Claim(KEY, f"delay, {name}", f"tasks run longer than they would alone, {name}-like (median execution delay, less "
            "that of a task with nothing beside it)", least=PUBLISHED_S[name] / 2, most=2 * PUBLISHED_S[name], unit="s",
            note=f"the paper has {PUBLISHED_S[name]:g} s, on nodes of its own: from half to twice that")
      for name in PUBLISHED_S),
    Claim(KEY, "delay ratio", "more load delays more (median execution delay, google_19 / alibaba)", least=1.0),
    Claim(KEY, "used", "a task ends when it has used the CPU-seconds that it asked for, and not before (least of all "
          "tasks, used / asked)", least=1.0),
)
