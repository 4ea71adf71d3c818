#!/bin/bash
# perftest.sh — measures rxe0 with perftest (ib_write_bw, ib_write_lat), for comparison with gpuload: tests/vm/run tests/vm/perftest.sh
#
# The two processes are in one guest.  Prints for each command its options, the median of $TIMES runs, and all runs, in MiB/s or us.
TIMES=${TIMES:-5} TOTAL=${TOTAL:-$((64 << 20))} SIZES=${SIZES:-65536 1048576} QPS=${QPS:-1 4}

# one COMMAND COLUMN: run perftest and print this column of its last row.  perftest first compares the CPU's clock with the time of
# day, and reports no value ("Can't produce a report", or inf) if the machine is too busy for that; then it is run again.
one() {
	local try value
	for try in 1 2 3 4 5; do
		$1 >/tmp/server 2>&1 &
		# until the server listens on port 18515
		while kill -0 $! && ! grep -q ':4853 .* 0A ' /proc/net/tcp /proc/net/tcp6; do sleep 0.02; done
		$1 10.9.0.1 >/tmp/client 2>&1
		wait
		value=$(awk -v column="$2" '$1 ~ /^[0-9]+$/ && NF >= 5 { value = $column } END { print value }' /tmp/client)
		[[ $value =~ ^[0-9.]+$ ]] && echo "$value" && return
	done
	cat /tmp/client /tmp/server >&2
	return 1
}

# median COMMAND COLUMN UNIT
median() {
	local all=() i
	for ((i = 0; i < TIMES; i++)); do all+=("$(one "$1" "$2")") || exit 1; done
	echo "$1: $(printf '%s\n' "${all[@]}" | sort -g | sed -n "$((TIMES / 2 + 1))p") $3 (${all[*]})"
}

for size in $SIZES; do
	for qps in $QPS; do
		median "ib_write_bw -d rxe0 -x 1 -s $size -q $qps -n $((TOTAL / size / qps))" 4 MiB/s
	done
done
median "ib_write_lat -d rxe0 -x 1 -s 8 -n 2000" 5 us
