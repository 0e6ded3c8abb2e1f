"""The plain twins of the dispatchers: Algorithm 1 of HMHS line by line, and its relatives in the same words.

A case is a dictionary of lists: tasks, seconds, shuffle, ready by job; factor[job][column]; available by column.
"""
import math


def executions(case):
    """E_ij."""
    return [[shuffle + seconds * factor for factor in factors]
            for seconds, shuffle, factors in zip(case["seconds"], case["shuffle"], case["factor"], strict=True)]


def algorithm_1(case):
    """Dynamic-Min-Min as printed (hmhs 3.2); returns (job, column, completion) in order. Ties: C_ij, E_ij, i, j."""
    left, ready, available = list(case["tasks"]), case["ready"], list(case["available"])
    execution = executions(case)
    u = {job for job, tasks in enumerate(left) if tasks}
    jw = set()
    assigned = []
    while u or jw:  # line 1
        eat = min(available)  # 2
        for job in sorted(u):  # 3
            if ready[job] <= eat:  # 4
                jw.add(job)  # 5
                u.remove(job)
        if not jw:  # 8
            job = min(u, key=lambda each: (ready[each], each))
            jw.add(job)  # 9
            u.remove(job)
        completion = {}
        for job in jw:  # 11
            for machine, free in enumerate(available):  # 12
                completion[job, machine] = execution[job][machine] + max(free, ready[job])  # 13
        p, q = min(completion, key=lambda pair: (completion[pair], execution[pair[0]][pair[1]], *pair))  # 16
        assigned.append((p, q, completion[p, q]))  # 17
        available[q] = completion[p, q]  # 18
        left[p] -= 1
        if left[p] == 0:  # 19
            jw.remove(p)  # 20
    return assigned


def min_min(case):
    """The textbook: every job and column looked at for every task; all jobs ready at 0 (hmhs 3.2, map stage)."""
    left, available, execution = list(case["tasks"]), list(case["available"]), executions(case)
    assigned = []
    while any(left):
        pairs = [(available[column] + execution[job][column], execution[job][column], job, column)
                 for job, tasks in enumerate(left) if tasks for column in range(len(available))]
        completion, _, job, column = min(pairs)
        left[job] -= 1
        available[column] = completion
        assigned.append((job, column, completion))
    return assigned


def with_admission(case, choose, blind=False):
    """Jobs that are ready together are admitted together; *choose* picks one of the admitted (job: best columns).

    Best columns are (completion, execution, column), sorted; *blind*: (when it is free, column).
    """
    left, ready, available = list(case["tasks"]), case["ready"], list(case["available"])
    execution = executions(case)
    assigned = []
    admitted = set()
    while any(left):
        waiting = {job for job, tasks in enumerate(left) if tasks} - admitted
        if not any(left[job] for job in admitted):
            soonest = min(ready[job] for job in waiting)
            available = [max(free, soonest) for free in available]
        admitted |= {job for job in waiting if ready[job] <= min(available)}
        columns = {
            job: sorted((free, column) if blind else (free + execution[job][column], execution[job][column], column)
                        for column, free in enumerate(available) if execution[job][column] < math.inf)
            for job in admitted if left[job]
        }
        job = choose(columns)
        column = columns[job][0][-1]
        left[job] -= 1
        available[column] += execution[job][column]
        assigned.append((job, column, available[column]))
    return assigned


def dynamic_min_min(case):
    return with_admission(case, lambda columns: min(
        columns, key=lambda job: (columns[job][0][0], columns[job][0][1], job, columns[job][0][2])))


def max_min(case):
    return with_admission(case, lambda columns: min(columns, key=lambda job: (-columns[job][0][0], job)))


def sufferage(case):
    def loss(ranked):
        return ranked[1][0] - ranked[0][0] if len(ranked) > 1 else math.inf

    return with_admission(case, lambda columns: min(columns, key=lambda job: (-loss(columns[job]), job)))


def by_rank(case, rank):
    return with_admission(case, lambda columns: min(columns, key=lambda job: (-rank[job], job)))


def in_job_order(case):
    return with_admission(case, min, blind=True)


def hmhs(jobs, map_speeds, reduce_speeds, pri, reverse=False):
    """HMHS in its three steps (3.3): the sorted ends of all tasks of jobs (maps, seconds, reduces, seconds).

    *map_speeds* and *reduce_speeds* are [job][machine]; *pri* is by job. One slot a machine, all jobs at 0.
    """
    zeros = [0.0] * len(jobs)
    maps = {"tasks": [job[0] for job in jobs], "seconds": [job[1] for job in jobs], "shuffle": zeros,
            "factor": map_speeds, "available": [0.0] * len(map_speeds[0])}
    tasks_of = [[] for _ in map_speeds[0]]
    for job, machine, _ in min_min(maps):
        tasks_of[machine].append(job)
    ends, ready = [], list(zeros)
    for machine, tasks in enumerate(tasks_of):
        now = 0.0
        for job in sorted(tasks, key=lambda each: (-pri[each] if reverse else pri[each], each)):
            now += jobs[job][1] * map_speeds[job][machine]
            ends.append(now)
            ready[job] = max(ready[job], now)
    reduces = {"tasks": [job[2] for job in jobs], "seconds": [job[3] for job in jobs], "shuffle": zeros,
               "ready": ready, "factor": reduce_speeds, "available": [0.0] * len(reduce_speeds[0])}
    return sorted(ends + [end for _, _, end in dynamic_min_min(reduces)])
