"""The claims of the HMHS paper (Chen, Shen, Chen, Guo), as bounds on measured numbers.

Its figures have no numbers but those in the text; "up to" is compared with the largest mean of a figure's points.
"""
from subak.reproduce.claims import Claim, Evidence, Why

SOME_JOBS = 150  # of Fig. 1, of which the paper may speak
CLAIMS = (
    Claim("1", "most below fifo", "compared to FIFO, HMHS decreases up to 77 % of makespan (largest mean)", least=0.77,
          unit="share", why=Why("no schedule of these jobs is that much shorter than FIFO's",
                                "arithmetic: the next line, by a lower bound on every makespan",
                                (Evidence("1", "most possible below fifo", most=0.77),))),
    Claim("1", "most possible below fifo", "not in the paper: the most that any schedule could be below FIFO (largest "
          "mean of 1 - bound / FIFO)", unit="share"),
    Claim("1", "least below fifo", "the performance improves from 51 % (least mean)", least=0.46, most=0.56,
          unit="share"),
    Claim("1", "trend", "slightly upward trend with the number of jobs (gain over FIFO at the most jobs less that at "
          "the fewest, the lesser of both workloads)", least=0.0, unit="share"),
    Claim("1", "single, most below fifo-pri", "up to 72 % below FIFO-Pri, single (largest mean)", least=0.67, most=0.77,
          unit="share"),
    Claim("1", "hybrid, most below fifo-pri", "up to 55 % below FIFO-Pri, hybrid (largest mean)", least=0.50, most=0.60,
          unit="share", why=Why(f"55 % is what {SOME_JOBS} jobs gain; the gain grows with the number of jobs",
                                "the next two lines",
                                (Evidence("1", f"hybrid, {SOME_JOBS} below fifo-pri", 0.50, 0.60),
                                 Evidence("1", "hybrid, change below fifo-pri", 0.0)))),
    Claim("1", f"hybrid, {SOME_JOBS} below fifo-pri", f"not in the paper: the same of {SOME_JOBS} jobs", unit="share"),
    Claim("1", "hybrid, change below fifo-pri", "not in the paper: hybrid, gain over FIFO-Pri at the most jobs less "
          "that at the fewest", unit="share"),
    Claim("1", "least below r-hmhs", "10 % to 30 % below R-HMHS (least mean)", least=0.10, unit="share"),
    Claim("1", "most below r-hmhs", "10 % to 30 % below R-HMHS (largest mean)", most=0.30, unit="share"),
    Claim("1", "single, change below r-hmhs", "there is no strong association between the effect and the number of "
          "jobs (single: gain over R-HMHS at the most jobs less that at the fewest)", least=-0.02, most=0.02,
          unit="share"),
    Claim("1", "hybrid, change below r-hmhs", "the same, hybrid", least=-0.02, most=0.02, unit="share"),
    Claim("1", "single over hybrid, r-hmhs", "single gets about 7 % more than hybrid (means over the jobs, of the gain "
          "over R-HMHS, in whose paragraph the paper says so)", least=0.04, most=0.10, unit="share",
          why=Why("the sentence fits the gain over FIFO", "the next line",
                  (Evidence("1", "single over hybrid, fifo", 0.04, 0.10),))),
    Claim("1", "single over hybrid, fifo", "the same of the gain over FIFO", least=0.04, most=0.10, unit="share"),
    Claim("1", "most above the bound", "not in the paper: how far HMHS is above a bound that no schedule can beat "
          "(largest mean)", unit="share"),
    Claim("1", "least above the bound", "not in the paper: the same, least mean", unit="share"),
    Claim("2", "cluster 6 below fifo", "with slow machines alone HMHS is close to FIFO (mean gain on cluster 6, the "
          "larger of both workloads)", most=0.15, unit="share"),
    Claim("2", "worst step", "the fewer slow machines, the more is gained (largest loss of gain from a cluster to the "
          "one with fewer slow machines)", most=0.01, unit="share"),
    Claim("2", "most below fifo", "not in the paper: the gain on cluster 1 (larger of both workloads)", unit="share"),
    Claim("yahoo", "below fifo", "not in the paper: HMHS below FIFO on the jobs of a trace", unit="share"),
    Claim("yahoo", "below fifo-pri", "not in the paper: below FIFO-Pri", unit="share"),
    Claim("yahoo", "below r-hmhs", "not in the paper: below R-HMHS", unit="share"),
    Claim("yahoo", "above the bound", "not in the paper: above the bound", unit="share"),
    Claim("locality", "alike, delay, node-local", "not in the paper, which plans to compare with delay scheduling: its "
          "tasks that run where their input is, on the trace's machines", unit="share"),
    Claim("locality", "alike, fair, node-local", "the same of fair sharing, which is delay scheduling without a wait",
          unit="share"),
    Claim("locality", "alike, hmhs, node-local", "the same of HMHS, which knows nothing of inputs", unit="share"),
    Claim("locality", "slow reads, hmhs below delay", "HMHS below delay scheduling (makespan), on machines that are "
          "alike, where far inputs take 1.5 and 2 times as long", unit="share",
          note="an assumption: in this trace maps far from their inputs take no longer (decision 47)"),
    Claim("locality", "speeds drawn, hmhs below delay", "the same, on machines whose speeds are drawn as the paper's",
          unit="share"),
    Claim("locality", "speeds drawn, delay below fair", "delay scheduling below fair sharing (makespan), there",
          unit="share"),
)
