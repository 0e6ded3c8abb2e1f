"""PAI, Alibaba's GPU clusters in 2020 (cluster-trace-gpu-v2020).

The source is pai_task_table.csv, one task of a job a line, without a header, or the folder that holds it. A
pai_job_table.csv beside it, one job a line, is read too.

- A task has inst_num alike instances, each of which is a task here; whether they start together is not said, so they do
  not. Several tasks of a job, such as workers and parameter servers, are of one job.
- plan_cpu and plan_gpu are of each instance, in per cent of a core and of a GPU, plan_mem in GiB.
- A task arrives when its job was submitted, which is start_time of pai_job_table.csv; the user stands there too. A
  line of it with a field that is none is dropped, and of several lines of a job the first counts. With too many bad
  lines (--max-lost) nothing is converted.
- Without that file, and where it does not say when a job was submitted, a task arrives when it starts: then it waits
  for nothing.
- Times are seconds on a clock of the trace's own. A task without a start never ran; one without an end is dropped.
- gpu_type is not modelled, and no fleet is written: the machines are in pai_machine_spec.csv.

Source: README.md, the files *.header and the issue 129 of https://github.com/alibaba/clusterdata,
cluster-trace-gpu-v2020; Weng et al., NSDI '22. Made from that schema and its example rows; the trace itself was not at
hand.
"""
from subak.workload.readers.table.published import Published, reader_of
from subak.workload.readers.table.submissions import Beside

READER = reader_of(Published(
    "pai2020", "pai_task_table.csv of Alibaba's GPU clusters of 2020, or its folder; pai_job_table.csv beside it "
    "says when jobs were submitted",
    "Alibaba's cluster-trace-gpu-v2020; Weng et al., NSDI '22", "CC-BY 4.0",
    ("arrival=start_time[s],start=start_time[s],end=end_time[s],job=job_name,tasks=inst_num,outcome=status",
     "cpu=plan_cpu[%],memory=plan_mem[GiB],gpu=plan_gpu[%]"),
    names=("job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
           "gpu_type"),
    beside=Beside("pai_task_table", "pai_job_table",
                  ("job_name", "inst_id", "user", "status", "start_time", "end_time"), job="job_name",
                  submitted="start_time", user="user"),
))
