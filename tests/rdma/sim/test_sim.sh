#!/bin/bash
# A few thousand seeds of the simulation.
exec "$GPULOAD_BUILD/tests/rdma/sim/sim" --seeds 1-6000 --jobs 2
