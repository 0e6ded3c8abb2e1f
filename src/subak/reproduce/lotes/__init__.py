"""LoTES's figures beside ours."""
