#!/usr/bin/env bats
# comm_incast.bats — gpuload comm incast: several senders, one receiver, with and without a private network; the figures are not
# compared with each other, because the tests share the CPUs.
load ../helper

# private ARG...: gpuload comm incast with a private network; the test is skipped where the system does not permit one.
private() {
	run --separate-stderr gpuload comm incast "$@"
	case $stderr in
	*"user namespaces, which this system refuses"* | *"cannot make a network namespace"* | *"which is not installed"* | *"failed: "*"not supported"*)
		skip "$stderr" ;;
	esac
	[[ $status == 0 ]] || show "gpuload comm incast $* should work"
}

# mode NAME EXPRESSION: print the value of a Python expression in which m is this mode's object.
mode() {
	json "(lambda m: ($2))([m for m in j['modes'] if m['mode'] == '$1'][0])"
}

@test "both modes deliver the messages of all senders" {
	works comm incast -n 4 --bytes 40000 --messages 12 --grant 16K
	says "# gpuload comm incast: 3 senders to one receiver (gpuload); 12 messages of 40000 from each"
	says "# queue: bytes between the senders and the receiver, counted at both ends every ms"
	(($(grep -cE '^ (sender|receiver) .* 0$' <<<"$output") == 2)) || show "two rows without wrong bytes"
	(($(grep -c '^# shares, .*: rank 1 .*, rank 2 .*, rank 3 ' <<<"$output") == 2)) || show "the shares of three senders"
	says_not FAILED
}

@test "--json is complete" {
	works comm incast -n 3 --bytes 100000 --messages 10 --window 64K --sender-window 300000 --json
	[[ $(json 'j["n_ranks"], j["launcher"], j["message_bytes"], j["messages"], j["window_bytes"], j["grant_bytes"], j["sender_window_bytes"], j["ok"]') == \
"(3, 'gpuload', 100000, 10, 65536, 100000, 300000, True)" ]] || show "settings"
	[[ $(json 'j["queue_source"], j["rate_bits_per_s"], j["queue_bytes"], j["round_trip_us"]') == "('counters', None, None, None)" ]] || show "network"
	[[ $(json '[m["mode"] for m in j["modes"]]') == "['sender', 'receiver']" ]] || show "modes"
	for m in sender receiver; do
		[[ $(mode $m 'm["bytes"], m["message"]["n"], m["wrong"], m["drops"], m["retransmissions"]') == "(2000000, 20, 0, None, None)" ]] || show "$m"
		[[ $(mode $m '0 < m["message"]["p50_us"] <= m["message"]["p99_us"] <= m["message"]["max_us"] <= m["time_us"]') == True ]] || show "$m"
		[[ $(mode $m 'abs(m["gb_per_s"] - m["bytes"] / m["time_us"] / 1e3) < 1e-9 and 0.5 <= m["fairness"] <= 1.0000001') == True ]] || show "$m"
		[[ $(mode $m 'len(m["shares"]) == 2 and max(m["shares"]) == 1000000') == True ]] || show "$m"
		[[ $(mode $m '0 <= m["queue"]["mean_bytes"] <= m["queue"]["max_bytes"]') == True ]] || show "$m"
	done
	# Each message is one grant, which is larger than the window: one is in flight, and on a busy machine another one of a late sender.
	[[ $(mode receiver 'm["queue"]["max_bytes"] <= 200000') == True ]] || show "granted bytes exceed the window"
}

@test "one mode, one sender, one message, and messages of odd sizes" {
	works comm incast -n 2 --mode sender --messages 1 --bytes 65 --json
	[[ $(json '[(m["mode"], m["bytes"], m["wrong"]) for m in j["modes"]], j["window_bytes"]') == "([('sender', 65, 0)], None)" ]] || show "sender"
	works comm incast -n 2 --mode receiver --messages 7 --bytes 100001 --grant 1K --sender-window 1 --json
	[[ $(json '[(m["mode"], m["bytes"], m["wrong"]) for m in j["modes"]]') == "[('receiver', 700007, 0)]" ]] || show "receiver"
}

@test "--plot draws both modes" {
	works comm incast -n 3 --messages 4 --plot p.svg
	python3 -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse("p.svg")'
	(($(grep -cE '^<path class="(sender|receiver)" d="M.*driven: mean' p.svg) == 2)) || show "$(cat p.svg)"
	fails 1 "p.svg already exists; --force replaces it" comm incast -n 3 --plot p.svg
	works comm incast -n 3 --messages 4 --plot p.svg --force --mode receiver
	(($(grep -cE '^<path class="(sender|receiver)" d="M.*driven: mean' p.svg) == 1)) || show "$(cat p.svg)"
}

@test "wrong values are one line each" {
	fails 2 "-n, the number of ranks" comm incast
	fails 2 "-n must be a number from 2 to 32, not '1'" comm incast -n 1
	fails 2 "--messages must be a number from 1 to 100000, not 'x'" comm incast -n 2 --messages x
	fails 2 "--bytes must be a size from 64 to 67108864 bytes, such as 64K, not '63'" comm incast -n 2 --bytes 63
	fails 2 "--bytes must be a size" comm incast -n 2 --bytes ""
	fails 2 "--queue must be a size" comm incast -n 2 --queue 1
	fails 2 "--window must be a size" comm incast -n 2 --window 0
	fails 2 "--grant must be a size from 1024 to 1048576 bytes, such as 64K, not '2M'" comm incast -n 2 --grant 2M
	fails 2 "--mode must be sender, receiver or both, not 'none'" comm incast -n 2 --mode none
	for rate in 1 1Gb G -1G 1e30 nan 200G ""; do
		fails 2 "--rate must be a rate from 1M to 100G bit/s, such as 1G or 2.5G, not '$rate'" comm incast -n 2 --rate "$rate"
	done
	fails 2 "--backend must be auto, verbs, libfabric, reliable-udp or reliable-verbs, not 'tcp'" comm incast -n 2 --backend tcp
	fails 2 "--provider tcp selects libfabric, but --backend is verbs" comm incast -n 2 --backend verbs --provider tcp
	fails 2 "--rate needs --backend libfabric" comm incast -n 2 --backend verbs --rate 1G
	fails 2 "--congestion cubic needs --rate" comm incast -n 2 --congestion cubic
	fails 1 "libfabric has no provider 'nosuch'" comm incast -n 2 --provider nosuch
	fails 2 "unexpected operand 'x'" comm incast -n 2 x
}

@test "--rate outside of the command that makes the network is refused" {
	GPULOAD_COMM_RANK=0 GPULOAD_COMM_SIZE=2 GPULOAD_COMM_JOB=none \
		fails 2 "--rate needs -n: the private network is made by the command that starts the ranks, not by gpuload" comm incast --rate 1G
}

@test "a private network: the queue is the kernel's, and its limit holds" {
	private -n 3 --rate 200M --queue 512K --messages 12 --json
	[[ $(json 'j["congestion_control"]') == reno ]] || show "congestion control"
	[[ $(json 'j["queue_source"], j["rate_bits_per_s"], j["queue_bytes"], j["ok"]') == "('token bucket', 200000000, 524288, True)" ]] || show "network"
	# libfabric 1 names the provider "tcp;ofi_rxm", libfabric 2 "tcp"
	[[ $(json 'j["device"].startswith("libfabric tcp") and " on eth0" in j["device"]') == True ]] || show "device"
	[[ $(json 'all(m["wrong"] == 0 and m["bytes"] == 24 * 262144 and m["queue"]["max_bytes"] <= 524288 for m in j["modes"])') == True ]] || show "modes"
	# 6 MiB take at least 0.25 s at the rate of the link; a burst of 32 KiB makes no difference.
	[[ $(json 'all(m["time_us"] > 240000 for m in j["modes"])') == True ]] || show "the link is faster than its rate"
	# Each sender alone begins with ten packets of 9000 bytes.
	[[ $(mode sender 'm["queue"]["max_bytes"] > 65536') == True ]] || show "the sender-driven queue should be deep"
	# The limit is twice the window: packets have headers, TCP may send some twice, and late senders have extra credits.
	[[ $(mode receiver 'm["queue"]["max_bytes"]') -le $((2 * $(json 'j["window_bytes"]') + 65536)) ]] || show "the receiver-driven queue exceeds the window"
}

@test "an unknown congestion control is one line" {
	private -n 2 --rate 500M --messages 1 --mode receiver
	fails 1 "--congestion: a network namespace cannot use 'nosuch'" comm incast -n 2 --rate 1G --congestion nosuch
}

@test "the private network ends with the command, also after SIGKILL" {
	private -n 3 --rate 500M --messages 2 --mode receiver
	gpuload comm incast -n 3 --rate 1M --messages 1000 >out 2>&1 3>&- &
	launcher=$!
	for ((i = 0; i < 200; i++)); do
		ranks=$(cat "/proc/$launcher/task/$launcher/children")
		[[ $(wc -w <<<"$ranks") == 3 ]] && break
		sleep 0.05
	done
	[[ $(wc -w <<<"$ranks") == 3 ]] || show "no ranks: $(cat out)"
	kill -KILL $launcher
	for rank in $ranks; do
		for ((i = 0; i < 200; i++)); do
			[[ -e /proc/$rank && $(cut -d' ' -f3 "/proc/$rank/stat" 2>/dev/null) != Z ]] || continue 2
			sleep 0.05
		done
		show "rank $rank is still there"  # with the namespaces that it keeps
	done
}
