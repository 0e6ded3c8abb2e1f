"""First fit in a process of its own, with the standard library alone.

Run: subak simulate W --scheduler "pipe:python3 examples/first_fit.py"
"""
import json
import sys

free = []  # of each machine, by resource, in units
waiting = []  # jobs, the first to arrive first
request = {}  # what each job asks for, in units
started = []  # what is answered


def fits(job, machine):
    """Whether a machine has free what a job asks for."""
    return all(asked <= there for asked, there in zip(request[job], free[machine], strict=True))


def serve():
    """Start waiting jobs in the order of their arrival, until one fits nowhere."""
    while waiting:
        machine = next((number for number in range(len(free)) if fits(waiting[0], number)), None)
        if machine is None:
            return
        job = waiting.pop(0)
        free[machine] = [there - asked for asked, there in zip(request[job], free[machine], strict=True)]
        started.append({"timestamp": now, "type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": str(machine)}})


for line in sys.stdin:
    message = json.loads(line)
    now = message["now"]
    started.clear()
    for event in message["events"]:
        data = event.get("data", {})
        if event["type"] == "SIMULATION_BEGINS":
            free.extend(machine["capacity"] for machine in data["compute_resources"])
        elif event["type"] == "JOB_SUBMITTED":
            request[data["job_id"]] = data["job"]["request"]
            waiting.append(data["job_id"])
        elif event["type"] == "JOB_COMPLETED":
            machine = int(data["alloc"])
            free[machine] = [there + back for back, there in zip(request[data["job_id"]], free[machine], strict=True)]
    serve()
    print(json.dumps({"now": now, "events": started}), flush=True)
