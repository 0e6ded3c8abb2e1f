"""The choices of a global master by name: how it picks a machine, and which queue it serves next."""

PLACEMENTS = ("first-fit", "aligned-fit", "bins")
FIRST_FIT, ALIGNED_FIT, BINS = range(len(PLACEMENTS))
ROUND_ROBIN = "round-robin"  # or the name of a fair order
TASK_ORDERS = ("fifo", "priority", "fewest-tasks")  # within a queue
FIFO, PRIORITY, FEWEST_TASKS = TASK_ORDERS
