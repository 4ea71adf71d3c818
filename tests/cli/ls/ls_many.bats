#!/usr/bin/env bats
# ls_many.bats — gpuload ls on folders, wheels, zip and tar files; --group, --sort, --diff and --sass.
load ../helper

# write_ptx FILE SHARED [NAME...]: PTX whose kernels (default: small, tile) each use SHARED bytes more than the one before.
write_ptx() {
	local file=$1 bytes=$2
	shift 2
	printf '.version 8.4\n.target sm_90\n.address_size 64\n' > "$file"
	for name in "${@:-small}"; do
		printf '.visible .entry %s(.param .u64 a)\n{\n\t.shared .align 4 .b8 s_%s[%d];\n\t.reg .b64 %%rd<2>;\n\tmov.u64 %%rd1, s_%s;\n\tret;\n}\n' \
			"$name" "$name" "$bytes" "$name"
		bytes=$((bytes + bytes))
	done >> "$file"
}

# A folder with two files with device code, one without, and a damaged one.
make_folder() {
	mkdir -p folder/lib
	write_ptx folder/lib/a.ptx 64 alpha beta
	write_ptx folder/b.ptx 128 gamma
	echo "just words" > folder/README.txt
	printf '\x7fELF\x02\x01\x01' > folder/lib/broken.so
}

@test "ls lists each file of a folder in one line, also after an error" {
	make_folder
	run --separate-stderr gpuload ls folder
	[[ $status == 1 && $stderr == "gpuload ls: folder/lib/broken.so: "* ]] || show "should report the damaged file"
	[[ ${#lines[@]} == 2 && ${lines[0]} == "folder/b.ptx: 1 image: 1 ptx; sm_90" ]] || show "should print two lines"
	[[ ${lines[1]} == "folder/lib/a.ptx: 1 image: 1 ptx; sm_90" ]] || show "the second line"
	rm folder/lib/broken.so
	works ls folder --json
	[[ ${#lines[@]} == 2 ]] || show "should print one object per file"
	works ls folder --match 'b*'
	says "folder/lib/a.ptx"
	says_not "gamma"
	mkdir empty
	fails 1 "empty: no device code found in its files" ls empty
	fails 1 "folder: no kernel matches 'nothing'" ls folder --match nothing
}

@test "ls reads wheels, zip files and tar files" {
	make_folder
	rm folder/lib/broken.so
	python3 - <<-'END'
		import os, tarfile, zipfile
		with zipfile.ZipFile("x.whl", "w", zipfile.ZIP_DEFLATED) as z:
		    z.write("folder/lib/a.ptx")
		    z.write("folder/b.ptx", compress_type=zipfile.ZIP_STORED)
		    z.write("folder/README.txt")
		long = "folder/" + 30 * "long_name/" + "c.ptx"
		for suffix, format in (("", tarfile.GNU_FORMAT), (":gz", tarfile.PAX_FORMAT), (":ustar", tarfile.USTAR_FORMAT)):
		    mode = suffix if suffix == ":gz" else ""
		    with tarfile.open(f"x{suffix.replace(':', '.')}.tar", f"w{mode}", format=format) as t:
		        t.add("folder")
		        if suffix != ":ustar":
		            t.add("folder/b.ptx", arcname=long)
	END
	works ls x.whl
	[[ ${lines[0]} == "x.whl/folder/lib/a.ptx: 1 image: 1 ptx; sm_90" && ${#lines[@]} == 2 ]] || show "the wheel"
	for tar in x.tar x.gz.tar; do
		works ls "$tar"
		[[ ${#lines[@]} == 3 && $output == *"long_name/c.ptx: 1 image: 1 ptx; sm_90"* ]] || show "$tar"
	done
	works ls x.ustar.tar
	[[ ${#lines[@]} == 2 ]] || show "ustar"
	works ls x.gz.tar --kernel alpha --sort shared
	says "folder/lib/a.ptx"
	says_not "beta"
	if command -v zstd; then
		zstd -q x.tar
		works ls x.tar.zst
		[[ ${#lines[@]} == 3 ]] || show "zstd"
	fi
	printf '\xfd7zXZ\0' > x.tar.xz
	fails 1 "compressed by xz, which is not supported: decompress the file first" ls x.tar.xz
}

@test "ls reports damaged packages, and lists the other members" {
	make_folder
	python3 - <<-'END'
		import tarfile, zipfile
		with zipfile.ZipFile("good.zip", "w", zipfile.ZIP_DEFLATED) as z:
		    z.write("folder/lib/a.ptx")
		    z.write("folder/b.ptx")
		good = open("good.zip", "rb").read()
		entry = good.index(b"PK\1\2")
		def change(name, at, value):
		    open(name, "wb").write(good[:at] + value + good[at + len(value):])
		change("crc.zip", entry + 16, b"\0\0\0\0")
		change("bomb.zip", entry + 24, b"\0\0\0\x7f")
		change("far.zip", entry + 42, b"\xf0\xff\xff\x7f")
		change("long.zip", entry + 20, b"\0\0\0\x10")
		open("cut.zip", "wb").write(good[:-30])
		with tarfile.open("good.tar", "w") as t:
		    t.add("folder/lib/a.ptx")
		    t.add("folder/b.ptx")
		tar = open("good.tar", "rb").read()
		open("cut.tar", "wb").write(tar[:1400])
		open("bad.tar", "wb").write(tar[:124] + b"99999999999 " + tar[136:])
		open("cut.tar.gz", "wb").write(__import__("gzip").compress(tar)[:-40])
	END
	for zip in crc bomb; do
		run --separate-stderr gpuload ls $zip.zip
		[[ $status == 1 && $stderr == "gpuload ls: $zip.zip/folder/lib/a.ptx: its compressed "* && ${#stderr_lines[@]} == 1 ]] || show "$zip"
		[[ ${lines[0]} == "$zip.zip/folder/b.ptx: 1 image"* ]] || show "should list the other member of $zip.zip"
	done
	fails 1 "has no member" ls far.zip
	fails 1 "is cut off" ls long.zip
	fails 1 "cut off" ls cut.zip
	run --separate-stderr gpuload ls cut.tar
	[[ $status == 1 && $stderr == *"the tar file is cut off"* ]] || show "cut.tar"
	fails 1 "there is no valid member header" ls bad.tar
	fails 1 "damaged or cut off" ls cut.tar.gz
}

@test "ls --group kernel prints one entry per kernel" {
	write_ptx a.ptx 64 alpha beta
	sed 's/sm_90/sm_80/; s/alpha\[64\]/alpha[32]/' a.ptx > b.ptx
	ar rc lib.a a.ptx b.ptx
	works ls --group kernel lib.a
	says "        -        32-64          -  alpha"
	says "        in ptx:sm_80 ptx:sm_90"
	says "2 kernels, 4 rows"
	works ls --group kernel --sort shared --json lib.a
	[[ $(json '[(k["name"], [i["arch"] for i in k["images"]]) for k in j["kernels"]]') == "[('beta', ['sm_80', 'sm_90']), ('alpha', ['sm_80', 'sm_90'])]" ]] || show "JSON"
	fails 2 "--group must be kernel" ls --group image lib.a
}

@test "ls --sort orders the kernels of all images" {
	write_ptx a.ptx 64 zeta eta theta
	write_ptx b.ptx 100 iota
	ar rc lib.a a.ptx b.ptx
	works ls --sort shared --json lib.a
	[[ $(json '[k["name"] for k in j["kernels"]]') == "['theta', 'eta', 'iota', 'zeta']" ]] || show "shared"
	works ls --sort name --json lib.a
	[[ $(json '[k["name"] for k in j["kernels"]]') == "['eta', 'iota', 'theta', 'zeta']" ]] || show "name"
	works ls --sort stack lib.a
	says "ptx    sm_90        -     100      -      -      -        -        -  iota"
	works ls --sort registers a.ptx
	says "3 rows"
	fails 2 "--sort must be registers, shared, stack or name, not 'size'" ls --sort size lib.a
	fails 2 "--sort cannot be combined with --images" ls --sort name --images lib.a
}

@test "ls --diff reports kernels that are gone, new or changed" {
	write_ptx old.ptx 64 kept changed gone
	write_ptx new.ptx 64 kept changed fresh
	sed -i 's/s_changed\[128\]/s_changed[512]/' new.ptx
	works ls --diff old.ptx new.ptx
	says $'changed  ptx    sm_90    changed\n        shared 128 -> 512'
	says "gone     ptx    sm_90    gone"
	says "new      ptx    sm_90    fresh"
	says "1 gone, 1 new, 1 changed, 1 same"
	works ls --diff --json old.ptx new.ptx
	[[ $(json '{k["name"]: (k["change"], k["old"] and k["old"]["shared_bytes"]) for k in j["kernels"]}, j["same"]') == "({'changed': ('changed', 128), 'fresh': ('new', None), 'gone': ('gone', 256)}, 1)" ]] || show "JSON"
	works ls --diff old.ptx old.ptx
	[[ $output == "0 gone, 0 new, 0 changed, 3 same" ]] || show "the same file"
	fails 2 "--diff needs two files" ls --diff old.ptx
	fails 1 "nothing.ptx: no such file" ls --diff old.ptx nothing.ptx
}

@test "ls --kernel selects kernels by name" {
	write_ptx a.ptx 64 alpha _Z5scalePd
	works ls --kernel alpha a.ptx
	says "alpha("
	says_not "scale"
	fails 1 "no kernel is named 'alph'" ls --kernel alph a.ptx
	works ls --kernel _Z5scalePd a.ptx
	[[ $output == *"scale(double*)"* ]] || skip "no C++ runtime here"
	works ls --kernel scale a.ptx
	says "scale(double*)"
	says_not "alpha"
}

# Write a replacement for nvdisasm that prints its arguments and the first bytes of the cubin.
fake_nvdisasm() {
	mkdir -p tools
	printf '#!/bin/sh\nprintf "// %%s %%s %%s " "$1" "$2" "$3"; head -c 4 "$4" | tail -c 3; echo; exit ${NVDISASM_FAILS:-0}\n' > tools/nvdisasm
	chmod +x tools/nvdisasm
}

@test "ls --sass shows the machine code of a kernel" {
	write_ptx a.ptx 64 alpha
	fake_nvdisasm
	PATH="$PWD/tools:$PATH"
	fails 1 "no machine code to disassemble" ls --sass --kernel alpha a.ptx
	fails 2 "--sass needs --kernel NAME or --match GLOB" ls --sass a.ptx
	echo 'extern "C" __global__ void first(int *p) { *p = 1; }
	extern "C" __global__ void second(int *p) { *p = 2; }' > two.cu
	run --separate-stderr gpuload compile two.cu --cubin --arch sm_90 -o two.cubin
	[[ $stderr != *"no libnvrtc"* ]] || skip "no NVRTC here"
	works ls --sass --kernel second two.cubin
	says "// -c -fun "
	says " ELF"
	says_not "first"
	works ls --sass --match '*' --json two.cubin
	[[ $(json 'sorted(k["name"] for k in j["kernels"]), len({k["sass"] for k in j["kernels"]})') == "(['first', 'second'], 2)" ]] || show "each kernel has its symbol"
	fails 1 "no kernel is named 'third'" ls --sass --kernel third two.cubin
	NVDISASM_FAILS=3 fails 1 "nvdisasm failed with exit status 3" ls --sass --kernel first two.cubin
	[[ -e /usr/local/cuda/bin/nvdisasm ]] || {
		run --separate-stderr env PATH="$(dirname "$(command -v gpuload)")" CUDA_HOME=/none gpuload ls --sass --kernel first two.cubin
		[[ $status == 1 && $stderr == *"needs nvdisasm of the CUDA toolkit"* ]] || show "should report that nvdisasm is missing"
	}
}
