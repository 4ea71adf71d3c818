#!/bin/sh
# Some random cases of each kind of call; comm_random --cases 10000 is the long run.
set -e
random=${GPULOAD_BUILD:-build}/tests/comm/soak/comm_random
for call in sendrecv alltoall allreduce reducescatter allgather broadcast; do
	"$random" --seed 14 --cases 150 --call "$call"
done
"$random" --seed 14 --cases 150 --threads
"$random" --seed 14 --cases 50 --threads --transport net
