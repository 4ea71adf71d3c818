#!/usr/bin/env bats
# rdma_devices.bats — gpuload rdma devices, on recorded machines and with a libibverbs for tests.
load ../helper

setup_file() {
	export NIC_TESTS BUILT
	NIC_TESTS="$(cd "$cli_tests/../rdma/nic" && pwd)"
	BUILT="$(cd "$cli_tests/../.." && cd "${GPULOAD_BUILD:-build}" && pwd)/tests/rdma/nic"
}

# machine NAME: build the sysfs of a machine of tests/rdma/nic/machines in the folder NAME.
machine() {
	mkdir "$1"
	"$BUILT/build_machine" "$NIC_TESTS/machines/$1.txt" "$1"
}

# fake_verbs: the command uses a libibverbs with four devices.
fake_verbs() {
	[[ $(nm -D "$BUILT/so_devices.so") == *ibv_open_device* ]] || skip "built without libibverbs"
	export GPULOAD_IBVERBS="$BUILT/so_devices.so"
}

# row NAME: print the first line that begins with NAME.
row() {
	grep -m1 "^$1 " <<< "$output"
}

@test "rdma needs a verb, and its help describes them" {
	fails 2 "a subcommand is missing" rdma
	works help rdma devices
	says "usage: gpuload rdma devices [OPTION...]"
	says "--sysfs DIR"
	fails 2 "unexpected argument" rdma devices extra
	fails 2 "--driver must be" rdma devices --driver other
	fails 1 "/nonexistent" rdma devices --sysfs /nonexistent
}

@test "a machine without a NIC is reported in one line, with what is used instead" {
	machine nothing
	works rdma devices --sysfs nothing
	[[ ${lines[0]} == "no RDMA NIC: messages go over libfabric, provider tcp" ]] || show "should say what is used"
	works rdma devices --sysfs nothing --json
	[[ $(json 'j["devices"], j["nic"], j["why"]') == "([], None, 'no RDMA NIC')" ]] || show "json"
}

@test "each GPU of a DGX H100 has a NIC of its own" {
	machine dgx-h100
	works rdma devices --sysfs dgx-h100
	[[ $(row mlx5_0) =~ ^mlx5_0\ +1\ +ACTIVE\ +InfiniBand\ +400\ Gb/s\ +-\ +0\ +0000:18:00.0\ +-\ +ibp24s0$ ]] || show "port"
	[[ $(row mlx5_2) =~ ^mlx5_2\ +1\ +DOWN\  ]] || show "port without a link"
	[[ $(row distance) =~ ^distance\ +GPU\ 0\ .*GPU\ 7$ ]] || show "title"
	grep -qE '^mlx5_10 +SYS +SYS +SYS +SYS +NODE +NODE +PXB\* +NODE$' <<< "$output" || show "distances"
	[[ $(grep -o 'PXB\*' <<< "$output" | wc -l) == 8 ]] || show "eight pairs"
	works rdma devices --sysfs dgx-h100 --json
	[[ $(json '[g["nic"] for g in j["gpus"]]') == "['mlx5_0', 'mlx5_3', 'mlx5_4', 'mlx5_5', 'mlx5_6', 'mlx5_9', 'mlx5_10', 'mlx5_11']" ]] || show "json"
	[[ $(json 'j["gpus"][5]["distances"]["mlx5_9"], j["gpus"][5]["distances"]["mlx5_0"]') == "('PXB', 'SYS')" ]] || show "json"
	[[ $(json 'j["devices"][1]["sysfs"]["pcie_link"]') == "16.0 GT/s PCIe x8 of 32.0 GT/s PCIe x16" ]] || show "json"
	works rdma devices --sysfs dgx-h100 --all
	says "mlx5_0 is below the same PCIe root port, several switches away from GPU 0000:1b:00.0 (PXB)"
	says "PCI 0000:29:00.0, 16.0 GT/s PCIe x8 of 32.0 GT/s PCIe x16, NUMA node 0, CPUs 0-55,112-167"
}

@test "software NICs without a PCI device are marked" {
	machine rxe
	works rdma devices --sysfs rxe
	[[ $(row rxe2) =~ virtual\ +-\ +dummy0$ ]] || show "rxe2"
	[[ $(row rxe0) =~ 0000:00:03.0\ +-\ +eth0$ ]] || show "rxe0"
	grep -qE '^rxe2 +virtual$' <<< "$output" || show "distance"
}

@test "the attributes of libibverbs are printed, and the GID that is used" {
	fake_verbs
	works rdma devices
	[[ $(row mlx5_0) =~ ^mlx5_0\ +1\ +ACTIVE\ +InfiniBand\ +400\ Gb/s\ +4096\ +-\ +-\ +0\ +fe80::506b:4b03:a1:b2c3 ]] || show "mlx5_0"
	grep -qE '^mlx5_1 +1 +ACTIVE +Ethernet +100 Gb/s +1024 +- +- +3  192\.168\.7\.1 +lo$' <<< "$output" || show "mlx5_1"
	grep -qE '^mlx5_1 +2 +DOWN .* none usable' <<< "$output" || show "mlx5_1 port 2"
	says "iw0         cannot be used: it is not RoCE or InfiniBand"
	says "locked      cannot be used: ibv_open_device: Permission denied"
	works rdma devices --all
	says "vendor 0x02c9 part 4129"
	says "atomics: device; on-demand paging: send write; dmabuf: yes; inline: 220 bytes"
	says "max_qp 131072"
	grep -qE 'GID 1 +RoCE v2 +fe80::526b:4bff:fea1:b2c3 +lo +link-local$' <<< "$output" || show "link-local"
	grep -qE 'GID 3 +RoCE v2 +192\.168\.7\.1 +lo +used$' <<< "$output" || show "used"
	works rdma devices --json
	[[ $(json '[d["name"] for d in j["devices"]]') == "['mlx5_0', 'mlx5_1', 'iw0', 'locked']" ]] || show "names"
	[[ $(json '[p["gid"] for d in j["devices"] for p in d["verbs"]["ports"]]') == "[0, 3, None, None]" ]] || show "GIDs"
	[[ $(json 'j["devices"][0]["verbs"]["attributes"]["max_mr_size"]') == 18446744073709551615 ]] || show "64 bits"
	[[ $(json 'j["devices"][0]["sysfs"], j["devices"][3]["verbs"]["usable"]') == "(None, False)" ]] || show "null"
}

@test "an empty list of libibverbs is no NIC, and a missing library is named" {
	fake_verbs
	FAKE_VERBS_DEVICES=0 works rdma devices
	[[ ${lines[0]} == "no RDMA NIC: messages go over libfabric, provider tcp" ]] || show "empty list"
	GPULOAD_IBVERBS=/nonexistent.so works rdma devices
	[[ ${lines[0]} == "no RDMA NIC (cannot load libibverbs: "*/nonexistent.so*"): messages go over libfabric, provider tcp" ]] || show "no library"
}

@test "only a NIC that libibverbs can use is chosen" {
	fake_verbs
	machine dgx-h100
	export GPULOAD_SYSFS=$PWD/dgx-h100
	# The software GPU has no PCI address.  mlx5_3 and others are in sysfs only, mlx5_0 and mlx5_1 in both lists.
	works rdma devices --json
	[[ $(json 'len(j["devices"]), j["nic"], j["gpus"][0]["nic"]') == "(14, 'mlx5_0', 'mlx5_0')" ]] || show "chosen"
	[[ $(json '[(d["sysfs"] is None, d["verbs"] is None) for d in j["devices"] if d["name"] in ("mlx5_0", "mlx5_3", "iw0")]') == "[(False, False), (False, True), (True, False)]" ]] || show "lists"
	FAKE_VERBS_DEVICES=2 works rdma devices
	says "mlx5_3      cannot be used: libibverbs has no provider for it"
	[[ $(row mlx5_0) =~ 400\ Gb/s\ +4096\ +0\ +0000:18:00.0\ +0\ +fe80::506b:4b03:a1:b2c3\ +ibp24s0$ ]] || show "joined"
}

@test "each usable provider of libfabric has a line, and --all prints every entry" {
	works rdma devices --json
	[[ $(json 'j["no_providers"]') == None ]] || skip "no libfabric"
	[[ $(json 'any(p["provider"].startswith("tcp") and p["chosen"] and p["usable"] for p in j["providers"])') == True ]] || show "tcp"
	[[ $(json 'max(sum(q["chosen"] for q in j["providers"] if q["provider"] == p["provider"]) for p in j["providers"])') == 1 ]] || show "one of each"
	entries=$(json 'len(j["providers"])')
	chosen=$(json 'sum(p["chosen"] for p in j["providers"])')
	works rdma devices
	[[ $(sed '1,/^provider /d' <<< "$output" | wc -l) == "$chosen" ]] || show "lines"
	works rdma devices --all
	says "libfabric "
	[[ $(sed '1,/^provider /d; /^libfabric /d' <<< "$output" | wc -l) == "$entries" ]] || show "all lines"
}

@test "without libfabric and without a NIC no message can be sent" {
	GPULOAD_LIBFABRIC=/nonexistent.so works rdma devices
	says "messages cannot be sent"
	says "libfabric cannot be used: cannot load libfabric: "
}
