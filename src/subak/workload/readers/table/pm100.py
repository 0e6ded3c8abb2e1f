"""PM100, the supercomputer Marconi100 of CINECA in 2020: job_table.parquet, one job a row.

- A job of several nodes is a gang of as many tasks, which start together and ask for equal parts of the cores (hardware
  threads) and GPUs it was allocated. Memory is not read: its unit is not stated.
- Times are UTC; time_limit, in minutes, is the estimate. The queue is the partition.
- It is a part of what the machine ran: jobs that shared a node, or of which no power was measured, were left out, so
  the load is less than the machine's.
- No accounts, no dependencies, no machines that stood idle.

Source: documentation/job_features.md of https://gitlab.com/ecs-lab/exadata and doi 10.5281/zenodo.10127767; Antici et
al., SC-W 2023. Made from that schema; the file was not at hand.
"""
from subak.workload.readers.table.published import Published, reader_of

READER = reader_of(Published(
    "pm100", "job_table.parquet of PM100, jobs of CINECA's Marconi100",
    "PM100, doi 10.5281/zenodo.10127767; Antici et al., SC-W 2023", "CC-BY 4.0",
    ("job=job_id,user=user_id,queue=partition,arrival=submit_time[iso],start=start_time[iso],end=end_time[iso]",
     "estimate=time_limit[min],outcome=job_state,tasks=num_nodes_alloc,cpu=num_cores_alloc[cores/tasks]",
     "gpu=num_gpus_alloc[GPUs/tasks]"), gang=True, has_clocks=True,
))
