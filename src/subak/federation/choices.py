"""What a global master may be told to go by, in words: which machine it takes, and whom it serves next."""

PLACEMENTS = ("first-fit", "aligned-fit", "bins")
FIRST_FIT, ALIGNED_FIT, BINS = range(len(PLACEMENTS))
ROUND_ROBIN = "round-robin"  # or the name of a fair order
TASK_ORDERS = ("fifo", "priority", "fewest-tasks")  # within a queue
FIFO, PRIORITY, FEWEST_TASKS = TASK_ORDERS
