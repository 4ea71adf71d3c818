#!/bin/bash
# perftest.sh — the figures of perftest on rxe0, for comparison with our own figures of the same
# run: tests/vm/run tests/vm/perftest.sh
#
# Between two processes of one guest.  Each line is a command, its options, the median of $TIMES runs, and the runs, in MiB/s or us.
TIMES=${TIMES:-5} TOTAL=${TOTAL:-$((64 << 20))} SIZES=${SIZES:-65536 1048576} QPS=${QPS:-1 4}

# one COMMAND COLUMN: the figure in this column of perftest's last row.  perftest compares the CPU's clock with the time of
# day first, and gives no figure ("Can't produce a report", or inf) if the machine was too busy for that: then once more.
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
