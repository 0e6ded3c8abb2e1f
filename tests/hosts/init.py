"""The first process of a host: it gives the host a boot id of its own, and reaps what is left to it."""
import os
import subprocess
import sys
import time

IDLE_S = 0.05


def main() -> None:
    """Serve until killed, which is a loss of power."""
    subprocess.run(["mount", "--bind", sys.argv[1], "/proc/sys/kernel/random/boot_id"], check=True)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(IDLE_S)


if __name__ == "__main__":
    main()
