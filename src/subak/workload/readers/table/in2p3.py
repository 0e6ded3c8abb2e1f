"""CC-IN2P3 in 2024, a computing centre of physics: 01.tsv to 12.tsv, one job of Slurm a line.

- A job is one task: nine of ten have one core, and how many nodes a job has is not in the columns that are known.
- elapsed is the run time, timelimit (seconds) the estimate. Jobs that maintenance killed ran again under the same
  number, and are tasks of one job. The queue is the partition.
- Memory is published, but under which name and unit was not to be found: it is not read.

Source: doi 10.5281/zenodo.18668107; Cochard and Simon, arXiv 2606.05914. Made from the names of columns that another
reader of the file has; neither the file nor its whole schema was at hand.
"""
from subak.workload.readers.table.published import Published, reader_of

READER = reader_of(Published(
    "in2p3", "a month of CC-IN2P3's jobs of 2024, tab-separated",
    "CC-IN2P3, doi 10.5281/zenodo.18668107; Cochard and Simon", "CC-BY 4.0",
    ("job=jobid,user=user,queue=partition,arrival=submit[epoch],start=start[epoch],run_time=elapsed[s]",
     "estimate=timelimit[s],outcome=state,cpu=alloccpus[cores],gpu=allocgpus[GPUs]"),
))
