#!/bin/bash
# Run a few rounds of every scenario on the software driver.
GPULOAD_DRIVER=soft exec "${GPULOAD_BUILD:-build}/tests/comm/fault/fault"
