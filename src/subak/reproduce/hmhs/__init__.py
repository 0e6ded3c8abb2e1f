"""HMHS's figures beside ours."""
