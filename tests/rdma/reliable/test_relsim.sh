#!/bin/bash
# Some thousand seeds of the simulation of a reliable connection.
exec "$GPULOAD_BUILD/tests/rdma/reliable/relsim" --seeds 1-8000 --jobs 2
