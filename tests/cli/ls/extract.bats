#!/usr/bin/env bats
# extract.bats — gpuload extract: write the images of a file as separate files.
load ../helper

inputs() {
	inputs="$(dirname "$(command -v gpuload)")/tests/inputs"
	[[ -e $inputs/inputs.json ]] || skip "no nvcc here"
}

@test "extracted cubins equal the output of ptxas, whatever the compression" {
	inputs
	for file in vec.none.fatbin vec.size.fatbin vec.many.fatbin libplain.so; do
		works extract "$inputs/$file" --kind cubin --sm 90 -o "$file.d"
		for cubin in "$file.d"/*.sm_90.cubin; do
			cmp "$cubin" "$inputs/vec.sm_90.cubin" || show "$file"
		done
	done
	cmp vec.many.fatbin.d/vec.4.sm_90a.cubin "$inputs/vec.sm_90a.cubin"
}

@test "extracted PTX assembles and runs, and keeps its ptxas options" {
	inputs
	works extract "$inputs/vec.options.fatbin" --kind ptx -o out
	says "out/vec.1.sm_75.ptx  image 1: ptx sm_75, registered, zstd"
	[[ $(head -n 1 out/vec.1.sm_75.ptx) == "// ptxas options: -maxrregcount=40" ]] || show "the first line"
	works run out/vec.1.sm_75.ptx --kernel vecadd "f32[64]=iota" "f32[64]=1" "out:f32[64]" i32=64 --expect 2=iota:1
	# Extracting a PTX file that has an options line adds no second one.
	works extract out/vec.1.sm_75.ptx -o again
	cmp again/vec.0.sm_75.ptx out/vec.1.sm_75.ptx
	ptxas=$(command -v ptxas || echo "${CUDA_HOME:-/usr/local/cuda}/bin/ptxas")
	[[ -x $ptxas ]] || skip "no ptxas here"
	"$ptxas" -arch=sm_90 out/vec.1.sm_75.ptx -o made.cubin
}

@test "LTO code is extracted as a fatbin that gpuload ls can list" {
	inputs
	works extract "$inputs/liblto.a" -o out
	works ls --json out/liblto.1.sm_75.lto.fatbin
	[[ $(json 'j["images"][0]["kind"], len(j["images"])') == "('lto', 1)" ]]
}

@test "extract writes the selected images and prints their paths" {
	inputs
	works extract "$inputs/libpart.a" --match vecadd -o out --json
	[[ $(json '[i["path"] for i in j["images"]]') == "['out/libpart.0.sm_90.rdc.cubin', 'out/libpart.1.sm_75.rdc.ptx']" ]] || show "paths"
	[[ $(json 'j["images"][0]["member"]') == part_kernel.o ]] || show "member"
	fails 1 "none of the 4 images has a kernel that matches 'nothing'" extract "$inputs/libpart.a" --match nothing -o out
	fails 1 "none of the 4 images matches --sm and --kind" extract "$inputs/libpart.a" --kind lto -o out
	fails 1 "no device code" extract "$(command -v gpuload)" -o out
	fails 2 "needs -o DIR" extract "$inputs/libpart.a"
	fails 2 "needs one FILE" extract -o out
}

@test "extract replaces files only with --force and leaves no partial files" {
	works extract "$vecadd" -o a/b/c
	[[ $(ls a/b/c) == vecadd.0.sm_75.ptx ]] || show "name"
	cmp a/b/c/vecadd.0.sm_75.ptx "$vecadd"
	echo mine > a/b/c/vecadd.0.sm_75.ptx
	fails 1 "already exists; --force replaces it" extract "$vecadd" -o a/b/c
	[[ $(cat a/b/c/*) == mine ]] || show "the file should be unchanged"
	works extract "$vecadd" -o a/b/c --force
	cmp a/b/c/vecadd.0.sm_75.ptx "$vecadd"
	[[ $(ls -A a/b/c) == vecadd.0.sm_75.ptx ]] || show "partial files are left"
	fails 1 "is not a folder" extract "$vecadd" -o a/b/c/vecadd.0.sm_75.ptx
	if [[ $(id -u) != 0 ]]; then
		mkdir closed && chmod 500 closed
		fails 1 "cannot be written" extract "$vecadd" -o closed
		[[ -z $(ls -A closed) ]] || show "partial files are left"
	fi
	run bash -c "(ulimit -f 0; trap '' XFSZ; gpuload extract $vecadd -o full) 2>&1 | cat"
	[[ $output == "gpuload extract: full/vecadd.0.sm_75.ptx: cannot be written: "* && -z $(ls -A full) ]] || show "a full disk"
}
