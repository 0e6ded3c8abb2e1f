"""The claims of the Dodoor paper (arXiv 2510.12889), as bounds on measured numbers.

It says by how much Dodoor is better, not than which of the others, nor at which load. Here it is beside Sparrow, and a
number is that of the load at which Dodoor is best.
"""
from subak.reproduce.claims import Claim

CLAIMS = (
    Claim("azure", "messages", "Dodoor reduces scheduling messages by 55 to 66 % (between schedulers, data store and "
          "workers, over Sparrow's)", least=0.34, most=0.45, note="Sparrow probes for each task"),
    Claim("azure", "throughput", "it can increase throughput by up to 33.2 % on virtual machines (Sparrow's tasks over "
          "the time until the last has ended, over Dodoor's)", most=0.751),
    Claim("azure", "mean", "it can reduce the mean makespan by 12.1 % (from submission to end, over Sparrow's)",
          most=0.879),
    Claim("azure", "tail", "it can improve the tail by 21.9 % (95 % of the tasks, over Sparrow's)", most=0.781),
    Claim("azure", "mean over fresh", "not in the paper: its mean over that with loads told at each decision"),
    Claim("azure", "mean over random", "not in the paper: its mean over that of schedulers that are never told a load"),
)
