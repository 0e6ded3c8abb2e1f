"""Acme, the clusters of Shanghai AI Laboratory in 2023 (AcmeTrace): trace_seren.csv or trace_kalos.csv, one job a line.

- A job of several nodes is a gang of as many tasks, which start together and ask for equal parts of its CPUs and GPUs.
  Kalos says how much memory each has (mem_per_pod_GB), Seren does not.
- It runs from start_time to end_time; the column duration of Kalos is from the submission on, and is not read. The
  column queue is how long it waited.
- Times name their zone. A job without a start never ran; one without an end is dropped.
- The trace has no queues, no estimates, no dependencies, and no machines; what a job was for (type) is not modelled.

Source: the README of https://github.com/InternLM/AcmeTrace; Hu et al., NSDI '24. Made from that schema and its four
example rows; the trace itself was not at hand.
"""
from subak.workload.readers.table.published import Published, reader_of

READER = reader_of(Published(
    "acme", "trace_seren.csv or trace_kalos.csv of Shanghai AI Laboratory's Acme clusters",
    "Shanghai AI Laboratory's AcmeTrace; Hu et al., NSDI '24", "CC-BY 4.0",
    ("job=job_id,user=user,arrival=submit_time[iso],start=start_time[iso],end=end_time[iso],outcome=state",
     "tasks=node_num,cpu=cpu_num[cores/tasks],gpu=gpu_num[GPUs/tasks]"),
    also={"mem_per_pod_GB": "memory=mem_per_pod_GB[GiB]"}, gang=True,
))
