"""MCH's figures beside ours."""
