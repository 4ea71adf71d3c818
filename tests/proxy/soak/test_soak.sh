#!/bin/bash
# Run every shape and consumer for a short time, on all CPUs and on one.  First check that the checker finds each error of damage.c.
set -e
soak=$GPULOAD_BUILD/tests/proxy/soak/soak
"$soak" --break all
command -v taskset > /dev/null && taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$soak" --triggers 100000 --only shared
"$soak" --triggers 300000
