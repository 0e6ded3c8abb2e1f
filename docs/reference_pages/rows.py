"""What the columns of a run's tables mean; tests/house/test_docs.py checks them against a run."""
from subak.federation.megha.jobs import OUTCOMES
from subak.fleet.locality import LEVELS
from subak.workload import table as workload
from subak.workload.predicates import OPERATORS

VALUES = {
    "constraints": f"a list of {{attribute, operator, value}}; operators are {' '.join(OPERATORS)}",
    "kind": " or ".join(workload.KINDS.categories),
    "outcome": "how it ended in the trace: " + ", ".join(workload.OUTCOMES.categories),
}
TASK_ROWS = {
    "job": "row of the job in the workload", "index": "number of the task within its job", "queue": "the job's queue",
    "arrival": "seconds", "run_time": "seconds",
    "ready": "seconds: the arrival, or the end of the last stage it waits for",
    "start": "seconds, of the last attempt; null for a task that is not running or finished",
    "finish": "seconds; null for a task that is not finished",
    "wait_time": "seconds: the first start minus ready", "machine": "id of the last attempt's machine",
    "attempts": "how often it was started", "status": "how it stands at the end",
    "reason": "why it is not running or finished",
    "framework_queueing": "seconds of the last start's wait spent in queues of the scheduler, or of masters",
    "processing": "seconds in service at masters: the decision",
    "worker_queueing": "seconds spent in a machine's queue",
    "communication": "seconds that the messages were under way",
}
FEDERATED_TASK_ROWS = {
    "global_master": "number of its global master, scheduler or distributor",
    "local_master": "cluster, or group, of the last attempt's machine (megha, central, pigeon)",
    "refusals": "requests that local masters refused (megha, central)",
    "repartitions": "requests on another global master's partition (megha, central)",
    "preemptions": "how often it was preempted (megha, central)",
}
ENDING_ROWS = {
    "outcome": f"how it ended: one of {', '.join(OUTCOMES[1:])}; null while it has not",
    "exit_code": "of its last attempt; null unless that finished or failed",
    "attempts_failed": "attempts that failed or ran too long",
}
INTERFERENCE_ROWS = {
    "execution_delay": "seconds that its last attempt ran longer for sharing CPU; null for a task that is not finished",
}
LOCALITY_ROWS = {
    "locality": f"how near its input its last attempt ran: {', '.join(LEVELS)}; null where that is not known",
}
WAITING_ROWS = {
    "task": "row of the task", "global_master": "number of its global master",
    "shape": "number of its request and constraints", "phase": "how it stands at its global master",
    "last_refused": "why its last request failed", "share": "share that its queue is entitled to, with fairness",
    "share_used": "share that its queue holds, as its global master sees it, with fairness",
    "asked_*resource*": "what it asks, in natural amounts",
}
VIEW_ROWS = {
    "global_master": "whose view", "shape": "number of a request and constraints", "tasks": "waiting tasks of both",
    "local_master": "cluster of the partition", "partition_of": "global master of the partition",
    "own": "whether that is the one whose view it is",
    "view_age": "seconds since an update of the cluster came; null: none did since it was asked for",
    "machines": "machines that are there and meet the constraints",
    "fit_in_view": "of them, could take a task in the view", "fit_in_truth": "of them, could take a task",
    "view_free_*resource*": "the most free on one of them, in the view",
    "free_*resource*": "the most free on one of them",
}
TIMELINE_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "arrivals": "tasks that arrived in it", "starts": "attempts that started in it", "ends": "tasks that ended in it",
    "lost": "attempts that ended before their time: their machine left or shrank, preemption, a failure",
    "waiting": "waiting tasks, the mean over time",
    "waiting_max": "waiting tasks, the most at once", "running": "running tasks, the mean over time",
    "used_*resource*": "amount in use, the mean over time, in natural amounts",
    "capacity_*resource*": "amount of the machines present, the mean over time",
    "stranded_*resource*": "free amount, at the interval's end, on machines where even the smallest waiting task "
                           "does not fit",
}
FEDERATED_TIMELINE_ROWS = {
    "messages": "messages that roles handled in it, timers among them",
    "refusals": "of them, refusals of requests (megha, central)",
    "repartitions": "of them, requests on another global master's partition (megha)",
    "preemptions": "attempts that ended in it because they were preempted (megha, central)",
}
ATTEMPT_ROWS = {
    "job": "row of the job in the workload", "index": "number of the task within its job",
    "machine": "id of the machine", "start": "seconds", "end": "seconds",
}
GROUP_ROWS = {
    "by": "what the group is of: length (short or long jobs), priority, class, gang, queue",
    "name": "short, long, the priority, the class, how many tasks wide gangs are, or the queue",
    "tasks": "tasks of it that count", "started": "of them, those that started",
    "wait_mean": "seconds; means and percentiles are of those that started",
    "wait_median": "seconds", "wait_p95": "seconds", "wait_p99": "seconds",
    "slowdown_mean": "mean bounded slowdown of the tasks that finished",
    "jobs": "jobs of which the first task is of the group",
    "completion_mean": "seconds from such a job's arrival to its end, of those all of whose tasks finished",
}
QUEUE_ROWS = {
    "queue": "its full name; the jobs of a queue above others are in a leaf whose name ends with a slash",
    "level": "1 at the top", "leaf": "whether it has jobs of its own and no queue below it",
    "weight": "against its siblings", "guarantee": "share that it is guaranteed when all queues are active",
    "jobs": "of it and of all below it", "tasks": "likewise",
    "share_mean": "its dominant share, the mean over the run",
    "guarantee_mean": "what it was guaranteed, the mean over the run; 0 while it is not active",
    "shortfall": "share-seconds that it was below its guarantee while tasks of it waited",
    "shortfall_mean": "the same over `demanding`: the share that it lacked, in the mean; null where nothing waited",
    "starved_longest": "seconds: the longest in which tasks of it waited and it held nothing",
    "demanding": "seconds in which tasks of it waited",
}
SHARE_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "queue": "the queue; null: all queues of the level that have no rows of their own, together",
    "level": "the queue's level", "share_*resource*": "what it holds of what is there, the mean over time",
    "share": "its dominant share, the mean over time",
    "guarantee": "what it is guaranteed, the mean over time, 0 while it is not active; null for several together",
    "waiting": "waiting tasks, the mean over time",
}
MACHINE_ROWS = {
    "machine": "the machine's id", "kind": "the name of its kind in the energy file",
    "hours": "that it was there in the window",
    "used_hours": "the amount that tasks used there of the resource that power follows, times hours",
    "kwh": "that it drew", "cost_energy": "of that, at the price of each instant; null where there is no price",
    "cost_machine": "of the hours that it was there; null where nothing has a price",
    "carbon": "kg of CO2 equivalent of what it drew; null where the file does not say",
}
POWER_ROWS = {
    "time": "seconds: when the interval begins", "span": "seconds: its length; the last may be shorter",
    "watts": "that all machines drew together, the mean over time",
    "price": "of a kWh, the mean over time; null where there is none",
    "carbon": "kg of CO2 equivalent of a kWh, the mean over time; null where the file does not say",
}
STINT_ROWS = {
    "kind": "map or reduce", "machine": "the machine's id", "slot": "which of its slots, from 0 on",
    "job": "the job's id", "begin": "seconds: when the first of these tasks began",
    "end": "seconds: when the last ended",
    "tasks": "how many there were",
}
