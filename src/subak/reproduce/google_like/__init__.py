"""The Google-like workload model, its tables and figures beside ours."""
