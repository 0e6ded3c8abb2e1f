"""DRF with gangs and first fit, plainly: from instant to instant, with shares as fractions."""
from fractions import Fraction


def starts(jobs, machines):
    """Return the start of each task, by (job, index), of those that ever start.

    *jobs* are (name, arrival, request, run times, is a gang); *machines* are amounts; nothing is lost. A job arrives at
    once, and its gang is all of it.
    """
    total = [sum(each) for each in zip(*machines, strict=True)]
    free = [list(each) for each in machines]
    running, waiting, started, closed, capped = [], {}, {}, set(), set()  # running: (end, job, machine)
    arrivals = sorted(jobs, key=lambda job: job[1])
    while arrivals or running:
        now = min([end for end, _, _ in running] + [job[1] for job in arrivals[:1]])
        freed = set()
        for end, job, machine in [one for one in running if one[0] == now]:
            running.remove((end, job, machine))
            free[machine] = [have + asked for have, asked in zip(free[machine], job[2], strict=True)]
            freed.add(machine)
        closed = {request for request in closed if not any(fits(free[machine], request) for machine in freed)}
        capped = set() if freed else capped
        while arrivals and arrivals[0][1] == now:
            job = arrivals.pop(0)
            waiting[job] = list(range(len(job[3])))
        while heads := [job for job, tasks in waiting.items() if tasks and job[2] not in closed and job not in capped]:
            job = min(heads, key=lambda one: (share(one, running, total), one[1], len(one[0]), one[0]))
            together = list(waiting[job]) if job[4] else waiting[job][:1]
            places = placed(job[2], len(together), free)
            if places is None:
                (capped if len(together) > 1 else closed).add(job if len(together) > 1 else job[2])
                continue
            for task, machine in zip(together, places, strict=True):
                free[machine] = [have - asked for have, asked in zip(free[machine], job[2], strict=True)]
                running.append((now + job[3][task], job, machine))
                waiting[job].remove(task)
                started[job[0], task] = now
    return started


def share(job, running, total):
    """What a job's running tasks hold of what is there, of the resource it asks most of."""
    count = sum(one is job for _, one, _ in running)
    return count * max(Fraction(asked, have) for asked, have in zip(job[2], total, strict=True))


def fits(free, request):
    return all(asked <= have for asked, have in zip(request, free, strict=True))


def placed(request, count, free):
    """The first machines that fit so many, one after the other; None where they do not."""
    left, places = [list(each) for each in free], []
    for _ in range(count):
        machine = next((number for number, have in enumerate(left) if fits(have, request)), None)
        if machine is None:
            return None
        left[machine] = [have - asked for have, asked in zip(left[machine], request, strict=True)]
        places.append(machine)
    return places
