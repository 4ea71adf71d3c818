#!/bin/bash
# The soak, small: every shape with every consumer, on as many CPUs as there are and on one; and each mistake is found.
set -e
soak=$GPULOAD_BUILD/tests/proxy/soak/soak
"$soak" --break all
command -v taskset > /dev/null && taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')" "$soak" --triggers 100000 --only shared
"$soak" --triggers 300000
