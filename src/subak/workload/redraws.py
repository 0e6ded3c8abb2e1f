"""The ways in which a seed may change a workload (resample.py applies them)."""
RESAMPLES = ("auto", "none", "days", "model")
AUTO, NONE, DAYS, MODEL = RESAMPLES
REDRAWN = "redrawn"  # the note of a workload that says of what days it was drawn
