#!/usr/bin/env bats
# netqueue.bats — gpuload comm netqueue: streams that a kernel unpacks; the figures are not checked.
load ../helper

@test "a stream from another process and from memory is right, at every alignment" {
	for source in tcp memory; do
		for align in random 16 1; do
			works comm netqueue --source $source --align $align --bytes 300K --pieces 1:9000 --count 2 --check
			says "# wrong bytes: 0 OK"
			(($(grep -cE '^ +[12] +307200 +[0-9]+ +0 +[0-9.]+ +[0-9.]+ +[0-9.]+ +0$' <<<"$output") == 2)) || show "$source $align"
		done
	done
}

@test "small slots and small pieces need many laps" {
	works comm netqueue --bytes 200K --pieces 1:30 --slots 4 --slot 4K --count 1 --check --json
	[[ $(json 'j["ok"], j["receives"][0]["pieces"] > j["entries"], j["slots"], j["slot_bytes"], j["source"], j["align"], j["pieces"]') == \
"(True, True, 4, 4096, 'tcp', 'random', [1, 30])" ]] || show "settings"
	[[ $(json '[r["wrong"] for r in j["receives"]], j["refused"], sum(r["bytes"] for r in j["receives"])') == "([0], [], 204800)" ]] || show "rows"
}

@test "corrupted entries are refused and listed; the other data is right" {
	works comm netqueue --bytes 300K --pieces 1:500 --corrupt 0.1 --count 2 --check
	says "# refused in receive 1: entry "
	grep -qE '^# corrupted entries: ([1-9][0-9]+), refused: \1 OK$' <<<"$output" || show "all of them"
	says "# wrong bytes: 0 OK"
	works comm netqueue --bytes 300K --pieces 1:500 --corrupt 0.1 --count 1 --check --json
	[[ $(json 'j["ok"], j["receives"][0]["refused"] == j["receives"][0]["corrupted"] > 20, len(j["refused"]) > 20') == "(True, True, True)" ]] || show "json"
	[[ $(json 'sorted(j["refused"][0])') == "['block', 'entry', 'field', 'limit', 'receive', 'text', 'value']" ]] || show "refused"
}

@test "the command line is checked" {
	fails 2 "--pieces must be MIN:MAX" comm netqueue --pieces 9:3
	fails 2 "--align must be one of random 16 1, not '7'" comm netqueue --align 7
	fails 2 "--source must be one of tcp memory, not 'udp'" comm netqueue --source udp
	fails 2 "--corrupt must be a probability from 0 to 1, not '2'" comm netqueue --corrupt 2
	fails 2 "--count must be a number from 1 to 1000000, not '0'" comm netqueue --count 0
	fails 2 "the slot size is 3000 bytes: expected a power of two" comm netqueue --slot 3000
	fails 2 "unexpected argument 'x'" comm netqueue x
}
