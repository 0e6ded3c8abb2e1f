"""F-DATA, the supercomputer Fugaku from 2021 to 2024: YY_MM.parquet, one job a row.

- A job is a gang of nnuma tasks, one a node, which start together and ask for equal parts of the cores it was allocated
  (cnumat). Memory is not read: its unit is not stated. The machine has no GPUs.
- It arrives at adt, and runs from sdt to edt; elpl is its limit in seconds, the estimate. Which zone the times are of
  is not stated: `--zone` names one. Rows that never started were left out by the publishers.
- Only whether it ended with exit code 0 is said: what was cancelled or ran out of time is FAIL.
- Queues, groups and dependencies are not published; users have numbers.

Source: docs/feature_list.csv and the scripts of F-DATA, doi 10.5281/zenodo.11467483; Antici et al., 2024. Made from
that schema; no file of it was at hand.
"""
from subak.workload.readers.table.published import Published, reader_of

READER = reader_of(Published(
    "fdata", "a month of F-DATA, jobs of the supercomputer Fugaku",
    "F-DATA, doi 10.5281/zenodo.11467483; Antici et al.", "CC-BY 4.0",
    ("job=jid,user=usr,arrival=adt[iso],start=sdt[iso],end=edt[iso],estimate=elpl[s],priority=pri",
     'outcome="exit state",tasks=nnuma,cpu=cnumat[cores/tasks]'), gang=True, has_clocks=True,
))
