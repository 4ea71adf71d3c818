#!/bin/bash
# The tests of rdma.h that work with any backend, with reliable-udp.
status=0
for name in rdma closing gpu_direct; do
	GPULOAD_TEST_BACKEND=reliable-udp "$GPULOAD_BUILD/tests/rdma/test_$name" || status=1
done
exit $status
