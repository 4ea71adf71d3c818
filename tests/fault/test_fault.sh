#!/bin/bash
# A few rounds of every scenario on the software driver; see fault.c.
exec "${GPULOAD_BUILD:-build}/tests/fault/fault" --driver soft
