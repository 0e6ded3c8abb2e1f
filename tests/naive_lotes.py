"""The plain twin of LoTES's bins: every set of jobs, one by one."""
import itertools

import numpy as np


def fitting_bins(capacity, request):
    """All sets of jobs that fit, as tuples; *request* is [resource, class], and every class asks for something."""
    most = [min(capacity[row] // column[row] for row in range(len(capacity)) if column[row]) for column in request.T]
    return {jobs for jobs in itertools.product(*(range(count + 1) for count in most))
            if (request @ np.array(jobs) <= capacity).all()}


def undominated_bins(capacity, request):
    """Those to which no job of any class can be added."""
    fitting = fitting_bins(capacity, request)
    classes = range(request.shape[1])
    return {jobs for jobs in fitting
            if not any(tuple(count + (each == more) for each, count in enumerate(jobs)) in fitting for more in classes)}
