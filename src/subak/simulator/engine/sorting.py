"""Sorts in place, without allocating."""
import numpy as np

from subak.kernels.kernel import kernel


@kernel
def sort(numbers: np.ndarray) -> None:
    """Sort int32[:] in place, ascending (heapsort)."""
    for place in range(numbers.size // 2 - 1, -1, -1):
        sink(numbers, place, numbers.size)
    for size in range(numbers.size - 1, 0, -1):
        numbers[0], numbers[size] = numbers[size], numbers[0]
        sink(numbers, 0, size)


@kernel
def sink(numbers: np.ndarray, place: int, size: int) -> None:
    """Let the number at *place* sink to where its children are smaller."""
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and numbers[child + 1] > numbers[child]:
            child += 1
        if numbers[place] >= numbers[child]:
            return
        numbers[place], numbers[child] = numbers[child], numbers[place]
        place = child
