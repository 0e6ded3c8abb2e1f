"""The claims of the MCH paper (You, Wang, Xu, Luo, Chen, Li), as bounds on measured numbers.

A claim in words alone gets the mildest bound that still says it; the rule beside it says which.
"""
from subak.reproduce.claims import Claim, Evidence, Why

NAN = float("nan")
# Section IV-A: the dominant shares of n1,1; n1,2; n2,1; n2,2; n2,3; n3,1 by which of them are there.
PAPER_SHARES = {
    (0, 1, 2, 3, 4, 5): (0.33, 0.5, 0.165, 0.165, 0.5, 0.33),
    (2, 3, 4, 5): (NAN, NAN, NAN, NAN, 1.0, NAN),  # when n1,2 has left; of the others, that they remain
}
TASK = "1 % is two tasks of the 200 that run"
ANEW = Why("nearly all of it is that H-DRF is worked out anew for every task; with updates of paths it chooses the "
           "same jobs in nearly MCH's time", "the lines of hdrf-fast, figure root",
           (Evidence("root", "implementation", least=10.0), Evidence("root", "algorithm", most=2.0)))
LEVELS = (3, 4, 5)

CLAIMS = (
    Claim("4", "mch paper", "all jobs there: MCH's shares are 0.33, 0.5, 0.165, 0.165, 0.5, 0.33 (largest difference)",
          most=0.01, unit="share", note=TASK),
    Claim("4", "hdrf paper", "H-DRF's are the same (largest difference)", most=0.01, unit="share", note=TASK),
    Claim("4", "mch ratio", "n1,1 and n3,1 hold twice what n2,1 and n2,2 do (n1,1 / n2,1)", least=1.9, most=2.1),
    Claim("4", "rises", "when n1,2 leaves, n2,3's share rises to 1", least=0.99, unit="share", note=TASK),
    Claim("4", "others", "and the others' remain the same (largest change)", most=0.01, unit="share", note=TASK),
    Claim("4", "mch error", "this is exhibited every time a job leaves: MCH shares as the hierarchy does (largest "
          "error against the exact shares)", most=0.01, unit="share", note=TASK,
          why=Why("MCH's weights are right only until the first resource is saturated", "the next line",
                  (Evidence("4", "mch-exact error", most=0.01),))),
    Claim("4", "mch-exact error", "not in the paper: mch-exact, flattened again after each saturation", unit="share"),
    Claim("4", "c-ch error", "naive collapses violate the hierarchy's guarantees (C-CH's largest error)", least=0.02,
          unit="share"),
    Claim("4", "m-ch error", "the same of M-CH", least=0.02, unit="share"),
    Claim("4", "drf error", "not in the paper: flat DRF's largest error", unit="share"),
    *(Claim("5", f"power of power, {levels}", f"{levels} levels: H-DRF's total time is almost the square of MCH's "
            "(ratio of the growth exponents, as far as H-DRF went)", least=1.6, most=2.4) for levels in LEVELS),
    Claim("5", "power of power, 2", "2 levels: the time is not the square (ratio of the growth exponents)", most=1.6,
          why=Why("the paper has q = 6 for 2 levels however many jobs there are; here q counts the jobs, all there at "
                  "once, and as many with 2 levels as with 3, where it is the square", "the lines of 3 levels",
                  (Evidence("5", "power of power, 3", 1.6, 2.4),))),
    *(Claim("5", f"power hdrf, {levels}", f"{levels} levels: H-DRF takes O(q^2) (growth exponent)", least=1.7, most=2.3,
            unit="") for levels in LEVELS),
    *(Claim("5", f"power mch, {levels}", f"{levels} levels: MCH takes at most O(q) (growth exponent; 0.2 is left for "
            "the logarithm of each decision)", most=1.2, unit="") for levels in LEVELS),
    Claim("5", "power q log q", "not in the paper: the growth exponent of q log q over these numbers of jobs", unit=""),
    *(Claim("5", f"mch to collapses, {levels}", f"{levels} levels: MCH behaves no better than C-CH and M-CH (MCH's "
            "time by theirs, geometric mean)", least=0.9) for levels in LEVELS),
    Claim("root", "implementation", "not in the paper: H-DRF's time by that of hdrf-fast, which makes the same choices "
          "(largest number of jobs, the median of the trees)"),
    Claim("root", "algorithm", "not in the paper: hdrf-fast's time by MCH's (the median of the trees)"),
    Claim("root", "algorithm share", "MCH is faster by its algorithm: flattening (its part of the logarithm of H-DRF's "
          "time by MCH's, the median of the trees)", least=0.5, unit="share", why=ANEW),
    Claim("root", "power share", "the same of the difference of the growth exponents", least=0.5, unit="share",
          why=ANEW),
    Claim("tree", "saved, 2 levels", "2 levels, 4 queues: MCH saves half of the total time", least=0.4, most=0.6,
          unit="share"),
    Claim("tree", "power hdrf", "not in the paper: growth exponent of H-DRF's decision with the nodes of the tree",
          unit=""),
    Claim("tree", "power hdrf-fast", "not in the paper: of hdrf-fast's", unit=""),
    Claim("tree", "power mch", "not in the paper: of MCH's", unit=""),
    *(Claim("large", f"rate {order}", f"not in the paper: {order}", unit="decisions a second")
      for order in ("hdrf", "hdrf-fast", "mch", "mch-exact", "c-ch", "m-ch", "drf")),
    *(Claim("federation", f"{turns}, {rule}", f"not in the paper: unfairness with {turns} turns, fairness {rule} (mean "
            "of all cases)", unit="share")
      for rule in ("off", "strict") for turns in ("round-robin", "hdrf-fast", "mch")),
)
