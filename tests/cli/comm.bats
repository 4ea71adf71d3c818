#!/usr/bin/env bats
# comm.bats — gpuload comm: collectives of several processes on the software driver; the figures are not checked.
load helper

# collective VERB ARG...: run it with 4 ranks; nothing may be wrong.
collective() {
	works comm "$1" -n 4 "${@:2}"
	says "# gpuload comm $1: 4 ranks (gpuload), soft driver"
	says "# wrong elements: 0 OK"
	says "# average bus bandwidth:"
}

# rows: the number of rows of the table in the output.
rows() {
	grep -cE '^ +[0-9]+ +[0-9]+ +(f16|bf16|f32|f64|i32|u8) ' <<<"$output"
}

@test "each collective is right on 4 ranks, in and out of place" {
	for verb in allreduce reducescatter allgather broadcast; do
		collective $verb --bytes 8:1M:32
		(($(rows) == 4)) || show "$verb should have 4 rows"
		(($(grep -cE ' 0  +[0-9.]+ +[0-9.]+ +[0-9.]+ +0  (ring|oneshot|direct)/' <<<"$output") == 4)) || show "$verb in place"
	done
	for verb in sendrecv alltoall; do
		collective $verb --bytes 8:1M:32
		(($(grep -cE ' 0 +- +- +- +-  (ring|oneshot|direct)/' <<<"$output") == 4)) || show "$verb out of place only"
	done
}

@test "buffers that the other ranks do not map are right, too" {
	for verb in allreduce reducescatter allgather broadcast alltoall; do
		works comm $verb -n 3 --bytes 8:256K:32 --no-register --iters 1
		says "memory that is not registered"
		says "# wrong elements: 0 OK"
	done
}

@test "every type and operation is right" {
	for dtype in f16 bf16 f32 f64 i32 u8; do
		for op in sum prod min max avg; do
			works comm allreduce -n 3 --bytes 4000 --dtype $dtype --op $op --iters 1 --warmup 0
			grep -qE "4000 .* $dtype +$op " <<<"$output" || show "$dtype $op"
			says "# wrong elements: 0 OK"
		done
	done
}
