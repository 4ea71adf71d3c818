#!/bin/bash
# A short soak: every shape with every consumer, on all CPUs and on one, and a check that each error of damage.c is found.
set -e
soak=$GPULOAD_BUILD/tests/proxy/soak/soak
"$soak" --break all
command -v taskset > /dev/null && taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$soak" --triggers 100000 --only shared
"$soak" --triggers 300000
