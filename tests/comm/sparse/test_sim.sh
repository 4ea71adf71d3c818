#!/bin/sh
# Some hundred random cases of the simulation; sparse_sim 100000 is the long run.
exec "${GPULOAD_BUILD:-build}/tests/comm/sparse/sparse_sim" 1000 1
