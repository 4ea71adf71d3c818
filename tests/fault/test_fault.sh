#!/bin/bash
# Run a few rounds of every scenario on the software driver.
exec "${GPULOAD_BUILD:-build}/tests/fault/fault" --driver soft
