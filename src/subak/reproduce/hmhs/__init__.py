"""The claims and figures of the HMHS paper beside ours."""
