"""Processes: nodes with a clock, a store, connections and an agent."""
