"""How a seed may change a workload; what each way means is in resample.py."""
RESAMPLES = ("auto", "none", "sessions", "model")
AUTO, NONE, SESSIONS, MODEL = RESAMPLES
