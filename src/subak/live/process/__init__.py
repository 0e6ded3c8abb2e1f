"""Processes: each a role with a clock, a store, connections and an agent."""
