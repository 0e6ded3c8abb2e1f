"""LoTES (Tran and others): classes, two linear programs and bins, made before a run to guide its dispatcher."""
