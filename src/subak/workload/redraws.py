"""How a seed may change a workload; what each way means is in resample.py."""
RESAMPLES = ("auto", "none", "days", "model")
AUTO, NONE, DAYS, MODEL = RESAMPLES
REDRAWN = "redrawn"  # the note of a workload that says of what days it was drawn
