#!/usr/bin/env bats
# load.bats — gpuload run on files with several images: selection, linking, --explain, messages.
load ../helper

setup_inputs() {
	inputs="$(dirname "$(command -v gpuload)")/tests/inputs"
	[[ -e $inputs/inputs.json ]] || skip "no nvcc here"
	args=("f32[1024]=iota" "f32[1024]=iota:0:2" "out:f32[1024]" i32=1024)
	check=(--kernel vecadd --expect 2=iota:0:3)
}

needs_nvjitlink() {
	gpuload version | grep -q "nvJitLink *[0-9]" || skip "no nvJitLink"
}

@test "links several files: objects, PTX and CUDA C++ in any combination" {
	setup_inputs
	source=$cli_tests/../inputs
	works run "$inputs/part_kernel.o" "$inputs/part_plus.o" "${args[@]}" "${check[@]}"
	works run "$inputs/part_plus.o" "$inputs/part_kernel.o" "${args[@]}" "${check[@]}"
	works run "$source/part_kernel.cu" "$inputs/part_plus.o" "${args[@]}" "${check[@]}"
	works run "$source/part_kernel.cu" "$source/part_plus.cu" "${args[@]}" "${check[@]}"
}

@test "reports an undefined symbol together with the function that uses it" {
	setup_inputs
	cd "$inputs"
	fails 1 "'plus' is not defined; 'vecadd' of part_kernel.o refers to it" \
		run part_kernel.o "${args[@]}"
	fails 1 "missing.o: no such file" run part_kernel.o missing.o "${args[@]}"
	fails 1 "'vecadd' is defined in both libpart.a(part_kernel.o) and vec.ptx" \
		run libpart.a vec.ptx "${args[@]}"
}

@test "--explain prints for each image why it was selected or not" {
	setup_inputs
	works run "$inputs/libvec.so" "${args[@]}" "${check[@]}" --explain
	[[ $stderr == *"libvec.so .nv_fatbin: cubin sm_90, "*" bytes: machine code: this driver runs PTX only"* ]] || show explain
	[[ $stderr == *"libvec.so .nv_fatbin: ptx sm_75, "*" bytes: taken"* ]] || show explain
	works run "$vecadd" --explain
	[[ $stderr == "gpuload run: $vecadd: ptx for sm_"*", which the driver compiles" ]] || show explain
	works run "$inputs/part_kernel.o" "$inputs/part_plus.o" "${args[@]}" "${check[@]}" --explain
	[[ $stderr == *"part_plus.o __nv_relfatbin: ptx sm_75, "*" bytes: used: it will be linked"* ]] || show explain
	[[ $stderr == *"linked 2 images to "*" bytes of PTX"* ]] || show explain
}

@test "--sm and --kind restrict the selection, and the message lists the images" {
	setup_inputs
	works run "$inputs/vec.many.fatbin" "${args[@]}" "${check[@]}" --sm 75 --kind ptx
	fails 1 "has no image selected by --sm or --kind that runs on sm_90; it has ptx sm_75, cubin sm_75" \
		run "$inputs/vec.many.fatbin" "${args[@]}" --sm 80
	fails 2 "--sm must be an architecture" run "$inputs/vec.many.fatbin" --sm fast
	fails 2 "--kind must be ptx, cubin or lto" run "$inputs/vec.many.fatbin" --kind elf
}

@test "the assumed command line contains every FILE, --sm and --kind" {
	setup_inputs
	works run "$inputs/part_kernel.o" "$inputs/part_plus.o" --kernel vecadd --kind ptx --sm 75
	line=$(sed -n 's/^assumed *//p' <<<"$output")
	[[ $line == "gpuload run $inputs/part_kernel.o $inputs/part_plus.o"*" --sm 75 --kind ptx "* ]] || show "$line"
	run --separate-stderr bash -c "$line --expect 2=iota:0:2"
	[[ $status == 0 ]] || show "$line"
}

@test "finds a kernel in any image of the file and offers similar names" {
	setup_inputs
	fails 2 "did you mean 'vecadd'?" run "$inputs/libvec.a" --kernel vecad
	fails 2 "2 kernels match 'axpy': void axpy<float>" run "$inputs/libvec.so" --kernel axpy
	works run "$inputs/libvec.so" --kernel "axpy<float>" f32=2 "f32[8]=iota" "inout:f32[8]=1" i32=8 --expect 2=iota:1:2
	fails 2 "name one of" run "$inputs/libvec.so"
}

@test "an extracted image runs with the same result" {
	setup_inputs
	works extract "$inputs/vec.options.fatbin" --kind ptx -o out
	works run out/*.ptx "${args[@]}" "${check[@]}"
	head -1 out/*.ptx | grep -q "^// ptxas options: .*maxrregcount" || show "$(head -1 out/*.ptx)"
}

@test "nvJitLink links LTO code, alone and together with PTX" {
	setup_inputs
	needs_nvjitlink
	works run "$inputs/liblto.a" "${args[@]}" "${check[@]}"
	works run "$inputs/lto_kernel.o" "$inputs/part_plus.o" "${args[@]}" "${check[@]}"
}

@test "reads every kind of FILE from a pipe" {
	setup_inputs
	for file in vec.ptx vec.size.fatbin libvec.so libvec.a; do
		works run <(cat "$inputs/$file") "${args[@]}" "${check[@]}"
	done
	works run <(cat "$inputs/part_kernel.o") <(cat "$inputs/part_plus.o") "${args[@]}" "${check[@]}"
}

@test "uses the gpuload run: line of a pipe" {
	works run <(cat "$cli_tests/../../demo/vecadd.ptx")
	[[ $output == *"expect    arg 2 = iota:0:3: yes"* ]]
}

@test "--kind also applies to PTX and CUDA C++" {
	fails 1 "has no image selected by --sm or --kind" run "$vecadd" --kind cubin
	works run "$vecadd" --kind ptx
}

@test "reports a file without device code" {
	setup_inputs
	fails 1 "without device code" run "$inputs/host.o"
}
