"""What a worker and the node agent of its machine say to each other of attempts, and the rules."""
