"""LoTES (Tran and others): classes, two linear programs and bins, planned before a run to guide dispatching."""
