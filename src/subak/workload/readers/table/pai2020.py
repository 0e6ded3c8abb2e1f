"""PAI, Alibaba's GPU clusters in 2020 (cluster-trace-gpu-v2020).

The file is pai_task_table.csv, one task of a job a line, without a header.

- A task has inst_num alike instances, each of which is a task here; whether they start together is not said, so they do
  not. Several tasks of a job, such as workers and parameter servers, are of one job.
- plan_cpu and plan_gpu are of each instance, in per cent of a core and of a GPU, plan_mem in GiB.
- A task arrives when it starts: its job's submission stands in pai_job_table.csv, which is not read. So nothing waits
  in the trace, and the load is what ran. Users stand there too.
- Times are seconds on a clock of the trace's own. A task without a start never ran; one without an end is dropped.
- gpu_type is not modelled, and no fleet is written: the machines are in pai_machine_spec.csv.

Source: the files *.header and the issue 129 of https://github.com/alibaba/clusterdata, cluster-trace-gpu-v2020; Weng et
al., NSDI '22. Made from that schema and its example row; the trace itself was not at hand.
"""
from subak.workload.readers.table.published import Published, reader_of

READER = reader_of(Published(
    "pai2020", "pai_task_table.csv of Alibaba's GPU clusters of 2020",
    "Alibaba's cluster-trace-gpu-v2020; Weng et al., NSDI '22", "CC-BY 4.0",
    ("arrival=start_time[s],start=start_time[s],end=end_time[s],job=job_name,tasks=inst_num,outcome=status",
     "cpu=plan_cpu[%],memory=plan_mem[GiB],gpu=plan_gpu[%]"),
    names=("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
           "gpu_type"),
))
