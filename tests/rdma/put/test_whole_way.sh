#!/bin/bash
# A short run of whole_way: small and odd shapes, then the errors that both ends must report.
# $GPULOAD_TEST_BACKEND chooses the fabric.
set -e
way="$GPULOAD_BUILD/tests/rdma/put/whole_way --driver soft --backend ${GPULOAD_TEST_BACKEND:-libfabric}"
$way --puts 20000
$way --puts 500 --blocks 1 --window 1
$way --puts 3000 --blocks 5 --window 3 --bytes 4104 --qps 3
$way --puts 2000 --blocks 8 --bytes 0
for what in data sender receiver; do
	$way --puts 20000 --break "$what"
done
