"""Which machine: feasibility, and the policies that choose among the machines that fit."""
