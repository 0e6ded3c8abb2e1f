#!/bin/sh
# One point of a sweep: zeta(s), for s from 2 on, by adding up nine million terms.
s=$((SUBAK_TASK_INDEX + 2))
awk -v s=$s 'BEGIN { for (k = 9000000; k > 0; k--) sum += 1 / k ^ s; printf "zeta(%d) = %.5f\n", s, sum }'
