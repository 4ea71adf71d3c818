#!/usr/bin/env bats
# comm_sparse.bats — gpuload comm sparse-allreduce on the software driver, over libfabric; the times are not checked.
load ../helper

sparse() {
	works comm sparse-allreduce --iters 1 --warmup 0 "$@"
}

@test "sparse and dense results are right for several sizes, densities and ranks" {
	for n in 1 3; do
		sparse -n $n --bytes 64K:256K:4 --density 0,2,100
		says "# gpuload comm sparse-allreduce: $n rank"
		says "# wrong elements: 0 OK"
		(($(grep -cE '^ +(65536|262144) +[0-9]+ +f32 +sum +(0|2|100) ' <<<"$output") == 6)) || show "6 rows"
		(($(grep -cE ' 100 +[0-9.]+ +[0-9.]+ +dense ' <<<"$output") == 2)) || show "dense data should be exchanged by the dense all-reduce"
	done
}

@test "types of 1, 2 and 8 bytes and the mean are right" {
	for dtype in f16 f64 u8; do
		sparse -n 2 --bytes 33333 --density 30 --dtype $dtype --op avg --block 16
		says "# wrong elements: 0 OK"
	done
}

@test "JSON says how many bytes were sent, and whether the data was dense" {
	sparse -n 2 --bytes 1M --density 0,1,100 --json
	[[ $(json '[r["fell_back_to_dense"] for r in j["rows"]]') == "[False, False, True]" ]] || show "rows"
	[[ $(json 'j["rows"][0]["sent_bytes"] < 1000 < j["rows"][1]["sent_bytes"] < 100000') == True ]] || show "sent bytes"
	[[ $(json '[j["ok"], j["block"], j["dense_above_percent"], j["rows"][0]["density_found_percent"]]') == "[True, 256, 50, 0]" ]] || show "JSON"
	sparse -n 2 --bytes 256K --density 100 --dense-above 1000 --json
	[[ $(json '[j["ok"], j["rows"][0]["fell_back_to_dense"], j["rows"][0]["n_blocks_summed"]]') == "[True, False, 256]" ]] || show "forced"
}

@test "--gpu-direct packs in device memory, and the path says so" {
	works comm sparse-allreduce -n 2 --bytes 64K --density 5,60 --iters 1 --provider tcp --gpu-direct yes --json
	[[ $(json 'j["sparse_path"].endswith(", GPU-direct"), [r["sparse"]["wrong"] for r in j["rows"]]') == "(True, [0, 0])" ]] || show "GPU-direct"
	works comm sparse-allreduce -n 2 --bytes 64K --density 5 --iters 1 --provider tcp --gpu-direct no
	says ", staged in host memory: requested"
}

@test "a rank that is killed is named, and ends the others" {
	gpuload comm sparse-allreduce -n 3 --bytes 1M --density 20 --dense-above 1000 --iters 1000000 >out.txt 2>err.txt &
	launcher=$!
	for ((i = 0; i < 3000; i++)); do
		[[ -s out.txt ]] && break
		sleep 0.02
	done
	sleep 0.2
	victim=$(sed -n 's/.*rank  1  pid *\([0-9]*\) .*/\1/p' out.txt)
	kill -9 "$victim"
	code=0
	wait $launcher || code=$?
	[[ $code == 1 ]] || { echo "exit code $code"; cat err.txt; return 1; }
	grep -q "rank 0: .*rank 1 (pid $victim)" err.txt || { cat err.txt; return 1; }
	grep -q "rank 1 (pid $victim) was killed by signal 9" err.txt || { cat err.txt; return 1; }
}

@test "a wrong command line is one line and exit code 2" {
	fails 2 "-n, the number of ranks" comm sparse-allreduce
	fails 2 "--density must be numbers from 0 to 100, such as 0.1,1,10, not '101'" comm sparse-allreduce -n 2 --density 101
	fails 2 "--density must be numbers from 0 to 100, such as 0.1,1,10, not '1,'" comm sparse-allreduce -n 2 --density 1,
	fails 2 "--density must be numbers from 0 to 100, such as 0.1,1,10, not 'nan'" comm sparse-allreduce -n 2 --density nan
	fails 2 "--density lists more than 16 numbers" comm sparse-allreduce -n 2 --density 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1
	fails 2 "--block must be a multiple of 16, not 100" comm sparse-allreduce -n 2 --block 100
	fails 2 "--block must be a number from 16 to 65536, not '0'" comm sparse-allreduce -n 2 --block 0
	fails 2 "--dense-above must be a number from 1 to 1000, not '0'" comm sparse-allreduce -n 2 --dense-above 0
	fails 2 "--op must be sum or avg, for which blocks of zeros can be left out, not 'max'" comm sparse-allreduce -n 2 --op max
	fails 2 "--dtype must be f16, bf16, f32, f64, i32 or u8, not 'int'" comm sparse-allreduce -n 2 --dtype int
	fails 2 "--bytes: expected MIN:MAX:FACTOR" comm sparse-allreduce -n 2 --bytes 16:8
	fails 2 "--check must be on or off" comm sparse-allreduce -n 2 --check maybe
	fails 2 "unexpected argument '4'" comm sparse-allreduce 4
}
