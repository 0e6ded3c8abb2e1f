"""Who held what, was guaranteed what, and went without."""
