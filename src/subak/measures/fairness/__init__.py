"""Measures fairness: what each queue held, was guaranteed and lacked."""
