#!/bin/sh
# A few hundred random cases of the simulation; sparse_sim 100000 is the long run.
exec "${GPULOAD_BUILD:-build}/tests/lab/sparse/sparse_sim" 1000 1
