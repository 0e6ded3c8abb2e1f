"""Defines each measure in a sentence."""
from subak.report.comparison import Measure

DEFINITIONS: dict[tuple[str, str], str] = {
    ("Wait time", ""): "From the instant a task is ready (it arrived, and what it depends on ended) to its first "
                       "start, or to the end of the window where it never starts; of the tasks that arrive in the "
                       "window or still wait as it begins, the mean and what so many of them waited at most.",
    ("Wait time, short jobs", ""): "The wait time of tasks of jobs whose mean run time is at most that of nine in ten "
                                   "jobs.",
    ("Wait time, long jobs", ""): "The wait time of tasks of the one job in ten with the longest mean run time.",
    ("Slurm job wait", ""): "The wait time of what Slurm calls a job: an element of an array counts by itself, tasks "
                            "that start together (a job on several nodes) once, until all of them have started.",
    ("Job wait", ""): "From a job's arrival to the first start of one of its tasks; an array counts once, when its "
                      "first element starts.",
    ("Job completion", ""): "From a job's arrival to its last task's finish, of jobs all of whose tasks finished.",
    ("Job slowdown", ""): "Job completion over what the job takes where nothing waits, its longest chain of tasks; at "
                          "least 1, under 10 s counted as 10 s.",
    ("Jobs", "finished"): "Jobs that arrived in the window and of which every task finished: none "
                                    "failed, was cancelled or given up.",
    ("Objectives", ""): "What was asked for, the value, and whether it is met; what never starts or ends is endless.",
    ("Idle while tasks wait", ""): "Share of the capacity that was free while tasks waited, whatever the reason: a "
                                   "blocked queue, or room that is too scattered.",
    ("Allocation time", ""): "From ready to the last start of a task, with the messages and queues of the federation "
                             "on the way; only for federations.",
    ("Its parts, mean", "framework queueing"): "Mean time that a task waited at the framework for its turn.",
    ("Its parts, mean", "processing"): "Mean time that masters worked on the task's messages.",
    ("Its parts, mean", "worker queueing"): "Mean time that a task waited at a worker for room.",
    ("Its parts, mean", "communication"): "Mean time that the task's messages spent on the network.",
    ("Bounded slowdown", ""): "(finish - ready) / run time of a finished task, at least 1; run times under 10 s count "
                              "as 10 s, so that short tasks do not rule the mean.",
    ("Execution delay", ""): "How much longer a finished task's last attempt ran, for sharing its machine's CPU, than "
                             "it would have with all that it wants (Megha, section VI-F).",
    ("Locality", ""): "Of the tasks that started and of which it is known where their input lies, the part that ran "
                      "last on a machine that holds it (node-local), on another one of such a machine's rack "
                      "(rack-local), or anywhere else (off-rack).",
    ("Utilisation", ""): "Share of the machines' capacity that tasks held, the mean over the window.",
    ("Fragmented", ""): "Share of the capacity that was free while tasks waited, but on machines where the smallest "
                      "waiting task did not fit; the mean over time. A scheduler that lets its queue be blocked can "
                      "have little of it.",
    ("Energy", ""): "What the machines drew in the window, each by the share in use of its resource and its kind's "
                    "watts; a machine that is not there draws nothing.",
    ("Energy", "per finished task"): "That over the tasks that finished in the window.",
    ("Energy", "per used hour"): "That over the hours for which tasks held a core, or what the resource is counted in.",
    ("Energy", "mean power"): "That over the length of the window.",
    ("Cost", ""): "Of the energy, at the price of each instant, and of the hours that machines were there.",
    ("Cost", "of energy"): "What the machines drew, at the price of each instant.",
    ("Cost", "of machines"): "The hours that machines were there in the window, at what such an hour costs.",
    ("Carbon", ""): "CO2 equivalent of what the machines drew, at what a kWh emits at each instant.",
    ("Queue", "mean"): "Tasks that were ready and had not started, the mean over the window.",
    ("Queue", "longest"): "The most tasks that were ready and had not started at any instant.",
    ("Fairness", ""): "Jain's index of a level: (sum x)^2 / (n sum x^2) of the dominant shares x, over their weights, "
                      "of the n queues with tasks waiting or running; 1 is fairest.",
    ("Fairness", "mean shortfall"): "Guarantee less dominant share of a queue while tasks of it waited, the mean over "
                                    "that time and over queues.",
    ("Fairness", "in share-seconds"): "The same, summed over time and queues: a queue that lacks a tenth of the "
                                      "cluster for 10 s lacks one share-second.",
    ("Fairness", "queues ever short"): "Queues that held less than their guarantee at any time while tasks waited.",
    ("Fairness", "longest starved"): "The longest time in which tasks of a queue waited and it held nothing.",
    ("Tasks", "finished"): "Tasks that ended by themselves.",
    ("Tasks", "running at the end"): "Tasks that had started and not ended when the run ended.",
    ("Tasks", "waiting at the end"): "Tasks that had arrived and not started when the run ended.",
    ("Tasks", "unplaceable"): "Tasks that no machine could ever hold.",
    ("Tasks", "failed"): "Tasks whose last attempt failed.",
    ("Tasks", "cancelled"): "Tasks that were cancelled.",
    ("Tasks", "timed out"): "Tasks that ran for longer than they may.",
    ("Tasks", "lost"): "Tasks whose last attempt was lost with its machine.",
    ("Tasks", "attempts failed"): "Attempts that failed or ran too long, those that were tried again among them.",
    ("Tasks", "attempts lost"): "Attempts that ended because their machine left or shrank, or a queue took it back.",
    ("Tasks", "run time lost"): "Seconds that lost attempts had run, over all tasks.",
    ("Federation", "messages a task"): "Messages that crossed the network, over the tasks.",
    ("Federation", "requests refused"): "Share of the requests of global masters that local masters refused: how "
                                        "often a view was wrong.",
    ("Federation", "tasks preempted"): "Tasks that a master ended to make room for another's guarantee.",
    ("Federation", "global masters busy"): "Share of the run in which a global master worked on messages, the mean.",
    ("Federation", "local masters busy"): "Share of the run in which a local master worked on messages, the mean.",
    ("Makespan", ""): "From the first arrival to the last end.",
    ("Makespan", "lower bound"): "No schedule of these jobs ends sooner.",
    ("Makespan", "above it"): "Makespan / lower bound - 1.",
    ("Makespan", "below"): "1 - makespan / the makespan of first in, first out.",
    ("Simulation", "tasks a second"): "Tasks simulated in a second of the simulator's own time.",
    ("Simulation", "peak memory"): "The most memory that the simulator's process held.",
}


def definition(measure: Measure) -> str:
    """Return what a measure means."""
    family, title = measure.family, measure.title
    nearest = ((family, title), (family, title.partition(" ")[0]), (family, ""))
    return next((DEFINITIONS[each] for each in nearest if each in DEFINITIONS), "")
