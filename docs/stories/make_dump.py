"""Print two weeks of a university's cluster as `sacct --parsable2` would: made up, and the same each time."""
import math
import random
from collections.abc import Iterator

DAYS, DAY, HOUR = 14, 86_400, 3_600
MONDAY = 1_704_672_000  # 2024-01-08, in seconds since 1970
# Each account's jobs a day, their median run time in hours, their cores, and gigabytes for each core.
ACCOUNTS = {"physics": (60, 1.5, (4, 8, 16, 32), 2), "biology": (90, 0.7, (1, 2, 4, 8), 6),
            "chemistry": (40, 2.0, (8, 16), 3)}
USERS = 4  # of each account
BUSY = [0.2] * 8 + [1.0] * 10 + [0.5] * 6  # how often jobs come in each hour of a day
WEEKEND = 0.3
FIELDS = ("JobID", "Account", "User", "Submit", "Start", "Elapsed", "Timelimit", "State", "NNodes", "AllocTRES")


def jobs() -> Iterator[str]:
    """Yield a line a job."""
    draw = random.Random(1)
    rows = sorted((arrival, account) for account in ACCOUNTS for arrival in arrivals(draw, account))
    for job, (arrival, account) in enumerate(rows, 1001):
        _, median, cores, memory = ACCOUNTS[account]
        taken = min(86_000, max(60, round(HOUR * draw.lognormvariate(math.log(median), 1.0))))
        limit = 15 * math.ceil(taken * draw.uniform(1.1, 3.0) / 900)  # minutes
        cpus = draw.choice(cores)
        user = f"{account[:3]}{draw.randrange(USERS)}"
        values = (job, account, user, arrival, arrival, taken, f"{limit // 60:02}:{limit % 60:02}:00", "COMPLETED", 1,
                  f"cpu={cpus},mem={cpus * memory}G,node=1")
        yield "|".join(map(str, values))


def arrivals(draw: random.Random, account: str) -> list[int]:
    """Return when jobs of an account come: more by day than by night, fewer at weekends."""
    found = []
    for hour in range(24 * DAYS):
        day, mean = hour // 24, ACCOUNTS[account][0] * BUSY[hour % 24] / sum(BUSY)
        mean *= WEEKEND if day % 7 >= 5 else 1.0
        moment = draw.expovariate(mean / HOUR)
        while moment < HOUR:
            found.append(MONDAY + hour * HOUR + int(moment))
            moment += draw.expovariate(mean / HOUR)
    return found


if __name__ == "__main__":
    print("|".join(FIELDS), *jobs(), sep="\n")
