"""What nodes keep on disk: written as a group, and durable before anything that follows from it leaves."""
