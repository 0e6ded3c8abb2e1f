"""The Google-like workload model: the paper's tables and figures beside ours."""
