"""A task of the prototype: ends when it has used its processor time (Megha, section VI-F).

`python -IS burner.py CORES SECONDS` wants so many cores for so many seconds. It is held to its cores in periods of a
tenth of a second, as Linux holds a control group to its `cpu.max`: what it did not get within a period is lost to it,
and then it runs for longer. When it has used all, which is never before its seconds have passed, it prints how much
that was, without what Python took to begin.
"""
import sys
import time

PERIOD_S = 0.1  # of Linux's cpu.max, unless told otherwise


def burn(cores: float, seconds: float) -> float:
    """Use *cores* for *seconds*; return the processor time that was used."""
    before, began = time.process_time(), time.monotonic()
    wanted, used = cores * seconds, 0.0
    while used < wanted:
        end = began + (int((time.monotonic() - began) / PERIOD_S) + 1) * PERIOD_S
        quota = min(wanted, used + cores * PERIOD_S)
        while used < quota and time.monotonic() < end:
            used = time.process_time() - before
        if used < wanted:
            time.sleep(max(0.0, end - time.monotonic()))
    time.sleep(max(0.0, began + seconds - time.monotonic()))  # of the last period it used its part at the beginning
    return used


if __name__ == "__main__":
    sys.stdout.write(f"{burn(float(sys.argv[1]), float(sys.argv[2]))!r}\n")
