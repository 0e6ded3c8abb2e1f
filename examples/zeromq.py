"""Lets a scheduler of Batsim that listens on ZeroMQ, such as pybatsim's, answer on a pipe; needs pyzmq.

Run: subak simulate W --scheduler "pipe:python3 examples/zeromq.py tcp://127.0.0.1:28000 pybatsim -t 0 fillerSched"

The first word is where the scheduler listens, the others are the command that starts it. What that prints goes to
standard error, since standard output is the pipe's.
"""
import subprocess
import sys

import zmq

endpoint, *command = sys.argv[1:]
scheduler = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr)
socket = zmq.Context().socket(zmq.REQ)
socket.setsockopt(zmq.LINGER, 0)
socket.connect(endpoint)
try:
    for line in sys.stdin:
        socket.send_string(line)
        while not socket.poll(100):  # milliseconds
            if scheduler.poll() is not None:
                sys.exit(f"{command[0]} ended with exit code {scheduler.returncode}")
        print(socket.recv_string(), flush=True)
    scheduler.wait(5)  # seconds
finally:
    scheduler.kill()
