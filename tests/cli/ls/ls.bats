#!/usr/bin/env bats
# ls.bats — gpuload ls: PTX, CUDA C++ and the images of other files.
load ../helper

# Set inputs to the folder of files built by nvcc; skip the test if there is no nvcc.
inputs() {
	inputs="$(dirname "$(command -v gpuload)")/tests/inputs"
	[[ -e $inputs/inputs.json ]] || skip "no nvcc here"
}

@test "ls lists the parameters of kernels" {
	works ls "$vecadd"
	says "PTX 7.0 for sm_75, 1 kernel"
	says "vecadd(f64 *, f64 *, f64 *, i32)"
	says "buffer, written"
	works ls "$faults" --json
	[[ $(json 'len(j["images"][0]["kernels"]), j["images"][0]["kernels"][5]["params"][0]["size"]') == "(7, 12)" ]]
	[[ $(json '[k["dynamic_shared"] for k in j["images"][0]["kernels"]].count(True)') == 1 ]]
}

@test "ls --strict refuses what ptxas refuses, with the line and the reason" {
	cat > strict.ptx <<-'END'
		.version 7.0
		.target sm_75
		.address_size 64
		.visible .entry k() { .reg .b32 r<2>; abs.u32 r0, r1; ret; }
	END
	works ls strict.ptx
	fails 1 "strict.ptx:4:39: abs.u32: type .u32 is not accepted here: expected .s16, .s32, .s64" ls --strict strict.ptx
	works ls --strict "$vecadd"
	says "PTX 7.0 for sm_75, 1 kernel"
	fails 2 "--strict cannot be combined with --images, --group, --sort, --sass and --diff" ls --strict --images strict.ptx
}

@test "ls prints demangled C++ names" {
	cat > mangled.ptx <<-'END'
		.version 7.0
		.target sm_75
		.address_size 64
		.visible .entry _Z5scalePdf(.param .u64 a, .param .f32 b) { ret; }
	END
	works ls mangled.ptx
	[[ $output == *"scale(double*, float)"* ]] || skip "no C++ runtime here"
	works ls mangled.ptx --json
	[[ $(json 'j["images"][0]["kernels"][0]["demangled"]') == "scale(double*, float)" ]]
	[[ $(json '[p["type"] for p in j["images"][0]["kernels"][0]["params"]]') == "['double*', 'float']" ]]
}

@test "ls says the same of a PTX file and of the same PTX in an archive" {
	cat > same.ptx <<-'END'
		.version 8.4
		.target sm_90
		.address_size 64
		.shared .align 8 .b8 outer[24];
		.extern .shared .align 16 .b8 dynamic[];
		.visible .entry tile(.param .u64 a, .param .align 16 .b8 b[20], .param .u8 c)
		.reqntid 128, 2
		.reqnctapercluster 2
		{
			.shared .align 4 .b8 odd[9956];
			.local .align 8 .b8 stack[40];
			.reg .b64 %rd<3>;
			mov.u64 %rd1, outer;
			mov.u64 %rd2, odd;
			ret;
		}
		.entry hidden() .maxntid 64 { ret; }
	END
	ar rc same.a same.ptx
	works ls --json same.ptx same.a
	python3 - "${lines[@]}" <<-'END'
		import json, sys
		file, archive = [json.loads(line)["images"][0]["kernels"] for line in sys.argv[1:]]
		assert len(file) == 2 and file[0]["shared_bytes"] % 16 == 0 and file[0]["shared_bytes"] > 9956 + 24, file
		assert file[0]["cluster"] == [2, 1, 1] and file[0]["stack_bytes"] is None, file
		for a, b in zip(file, archive):
		    assert b == {key: a[key] for key in b}, (a, b)
	END
}

@test "ls lists 200,000 kernels of one PTX file" {
	python3 - <<-'END' > many.ptx
		print(".version 8.4\n.target sm_90\n.address_size 64")
		for i in range(200000):
		    print(f".global .u32 g{i};\n.visible .entry k{i}() {{ ret; }}")
	END
	ulimit -t 20 # seconds of CPU time: the time is proportional to the number of kernels, about 2 s
	run bash -c 'gpuload ls many.ptx | head -1'
	says "200000 kernels"
}

@test "ls reports files without device code" {
	fails 1 "no device code found" ls "$(command -v gpuload)"
	: > kernel.cu
	fails 1 "empty" ls kernel.cu
	fails 1 "no such file" ls nothing.so
	echo "just words" > words.txt
	fails 1 "words.txt" ls words.txt
	fails 2 "needs a FILE" ls
}

@test "ls continues with the next file after an error" {
	run --separate-stderr gpuload ls nothing.ptx "$vecadd"
	[[ $status == 1 && $stderr == "gpuload ls: "*"nothing.ptx"* ]] || show "should report the first file"
	says "vecadd(f64 *, f64 *, f64 *, i32)"
	run --separate-stderr gpuload ls --json "$vecadd" "$faults"
	[[ $status == 0 && ${#lines[@]} == 2 ]] || show "should print one line per file"
}

@test "ls compiles CUDA C++ and lists its kernels" {
	echo '__global__ void fill(int *p, box b) { p[threadIdx.x] = N; }' > fill.cu
	run --separate-stderr gpuload ls fill.cu
	[[ $stderr != *"no libnvrtc"* ]] || skip "no NVRTC here"
	[[ $status == 1 && $stderr == *'"box" is undefined'* ]] || show "should report the error"
	works ls fill.cu -D N=42 -Dbox=int --std c++17
	says "fill.cu: PTX "
	says "fill(int*, int)"
	works ls fill.cu -D N=42 -Dbox=int --sm 90a
	says "for sm_90a, 1 kernel"
	works ls fill.cu -D N=42 -Dbox=int --json
	[[ $(json 'j["images"][0]["arch"], j["images"][0]["kernels"][0]["name"]') == "('sm_75', '_Z4fillPii')" ]]
}

@test "ls lists the kernels of every image" {
	inputs
	works ls "$inputs/vec.many.fatbin"
	says "vec.many.fatbin: 7 images: 6 cubin, 1 ptx; sm_75 sm_80 sm_90 sm_90a sm_100"
	says "image 0: ptx sm_75, registered, zstd, "
	says "image 4: cubin sm_90a, registered, "
	says "  regs  shared  stack  frame  const  threads  cluster  kernel"
	says "compiled by ptxas "
	says " -arch sm_100"
	says "shapes::inside(shapes::box, float const*, unsigned int*, unsigned int)"
	says "takes 0:32 shapes::box, 32:8 float const*, 40:8 unsigned int*, 48:4 unsigned int"
	says "takes 0:8 .u64, 8:8 .u64, 16:8 .u64, 24:4 .u32"
	says "hidden(int*, int) (static)"
	[[ ${lines[-1]} == "42 kernels in 7 images" ]] || show "the total"
}

@test "ls prints a paragraph for each kernel of a cubin" {
	inputs
	works ls "$inputs/vec.sm_90.cubin"
	says "vec.sm_90.cubin: 1 image: 1 cubin; sm_90"
	says "symbol     _Z4axpyIfEvT_PKS0_PS0_i"
	says "memory     512 bytes shared, 0 stack, 0 frame"
	says "block      at most 128 threads"
}

@test "ls --images lists only the images" {
	inputs
	works ls --images "$inputs/libvec.a"
	[[ ${lines[1]} == " image  unit  kind   arch     packed   stored     bytes  origin      member  section     notes" ]] || show "the header line"
	says "vec.o   .nv_fatbin"
	says_not "vecadd"
	works ls --images --json "$inputs/libvec.a"
	[[ $(json 'list(j["images"][0])[:8]') == "['kind', 'arch', 'origin', 'section', 'compression', 'relocatable', 'stored_bytes', 'bytes']" ]]
	[[ $(json '"kernels" in j["images"][0], j["images"][1]["member"]') == "(False, 'vec.o')" ]]
}

@test "ls --sm, --kind and --match select images and kernels" {
	inputs
	works ls --images --sm 90 "$inputs/vec.many.fatbin"
	says "2 of 7 images: 2 cubin; sm_90 sm_90a"
	works ls --images --sm sm_90a "$inputs/vec.many.fatbin"
	says "1 of 7 images: 1 cubin; sm_90a"
	works ls --images --kind ptx "$inputs/vec.many.fatbin"
	says "1 of 7 images: 1 ptx; sm_75"
	for glob in '_Z4axpyIf*' 'axpy<float>' '*(float, float const*, float\*, int)'; do
		works ls --json --match "$glob" "$inputs/vec.many.fatbin"
		[[ $(json '{k["name"] for i in j["images"] for k in i["kernels"]}, len(j["images"])') == "({'_Z4axpyIfEvT_PKS0_PS0_i'}, 7)" ]] || show "$glob"
	done
	fails 1 "no kernel matches 'nothing'" ls --match nothing "$inputs/vec.many.fatbin"
	fails 1 "no kernel matches 'nothing'" ls --match nothing "$vecadd"
	run --separate-stderr gpuload ls --json --sm 70 "$inputs/vec.many.fatbin"
	[[ $status == 1 && $(json 'j["images"]') == "[]" && $stderr == *"none of the 7 images matches --sm and --kind" ]] || show "none"
	fails 2 "--match cannot be combined with --images" ls --images --match vecadd "$vecadd"
	fails 2 "--sm must be an architecture" ls --sm ninety "$vecadd"
	fails 2 "--kind must be ptx, cubin or lto" ls --kind elf "$vecadd"
}

@test "ls --json lists exactly the images and kernels that were compiled" {
	inputs
	python3 - "$inputs" <<-'END'
		import json, subprocess, sys
		folder = sys.argv[1]
		made = json.load(open(f"{folder}/inputs.json"))
		NAMED = ("kind", "arch", "origin", "section", "compression", "relocatable")
		params = lambda kernels: {k["name"]: [tuple(p)[:2] for p in k["params"]] for k in kernels}
		checked = 0
		for what in made["inputs"]:
		    if not what["images"]:
		        continue
		    out = subprocess.run(["gpuload", "ls", "--json", f"{folder}/{what['file']}"], capture_output=True, text=True)
		    assert out.returncode == 0 and not out.stderr, (what["file"], out.stderr)
		    listed = json.loads(out.stdout)["images"]
		    assert len(listed) == len(what["images"]), (what["file"], len(listed))
		    for got, want in zip(listed, what["images"]):
		        assert {k: got[k] for k in NAMED} == {k: want[k] for k in NAMED}, (what["file"], got, want)
		        kernels = [{**k, "params": [list(p.values()) for p in k["params"]]} for k in got["kernels"]]
		        source = made["sources"].get(want.get("of") or what["kernels"] or "none", [])
		        if got["kind"] != "lto":
		            assert params(kernels) == params(source), (what["file"], kernels, source)
		        checked += 1
		assert checked > 20, checked
	END
}

@test "ls reports a damaged image and lists the others" {
	inputs
	python3 - "$inputs/vec.size.fatbin" <<-'END'
		import sys
		bytes = bytearray(open(sys.argv[1], "rb").read())
		at = bytes.index(b"\x28\xb5\x2f\xfd")  # the first zstd frame, which is the cubin
		bytes[at + 40:at + 60] = b"\xff" * 20
		open("damaged.fatbin", "wb").write(bytes)
	END
	run --separate-stderr gpuload ls damaged.fatbin
	[[ $status == 1 && $stderr == "gpuload ls: damaged.fatbin: image 0 (cubin sm_90) at "* ]] || show "should report the position"
	[[ ${#stderr_lines[@]} == 1 ]] || show "should be one line"
	says "image 1: ptx sm_75"
	run --separate-stderr gpuload ls --json damaged.fatbin
	[[ $status == 1 && $(json 'len(j["images"]), j["images"][0]["kernels"], "damaged" in j["images"][0]') == "(2, [], True)" ]] || show "JSON"
}

@test "ls replaces control characters in names" {
	inputs
	cp "$inputs/vec.sm_90.cubin" $'\x1b[31mred.cubin'
	works ls *red.cubin
	[[ ${lines[0]} == "?[31mred.cubin: 1 image: 1 cubin; sm_90" ]] || show "the file's name"
	works ls --json *red.cubin
	says '"file":"\u001b[31mred.cubin"'
	fails 1 $'?[31m/none: no such file' ls $'\x1b[31m/none'
}

@test "ls reports that stdout cannot be written, except if the reader closed the pipe" {
	run --separate-stderr bash -c "gpuload ls $vecadd > /dev/full"
	[[ $status == 1 && $stderr == *"could not be written"* ]] || show "a full disk"
	mkfifo pipe
	run --separate-stderr bash -c "trap '' PIPE; exec 4<> pipe 5> pipe 4>&-; gpuload ls $vecadd >&5"
	[[ $status == 1 && -z $stderr ]] || show "a closed pipe"
}

@test "ls prints signatures of any length" {
	long=$(printf 'k%.0s' {1..3000})
	sed "s/vecadd/$long/" "$vecadd" >long.ptx
	works ls long.ptx
	says "$long(f64 *, f64 *, f64 *, i32)"
	works ls --json long.ptx
	[[ $(json 'len(j["images"][0]["kernels"][0]["signature"])') == $((3000 + 26)) ]] || show "JSON"
}

@test "ls reads names that are nested 300,000 levels deep" {
	for unit in L LX P ad; do
		python3 - $unit <<-'END' > deep.ptx
			import sys
			print(".version 8.0\n.target sm_80\n.address_size 64")
			print(".visible .entry _Z1fI" + sys.argv[1] * (300000 // len(sys.argv[1])) + "() { ret; }")
		END
		gpuload ls deep.ptx > out # not run: a failure would print the name
		[[ $(wc -c < out) -gt 300000 ]]
	done
}

@test "ls lists the members around a damaged one, and names code for other GPUs" {
	printf '\x50\xed\x55\xba junk' > bad.fatbin
	cp "$vecadd" good.ptx
	ar rc inner.a good.ptx
	ar rc mixed.a bad.fatbin inner.a good.ptx
	run --separate-stderr gpuload ls mixed.a
	[[ $status == 1 && ${#stderr_lines[@]} == 1 && $stderr == *"mixed.a(bad.fatbin)"* ]] || show "stderr"
	says "2 kernels in 2 images"
	says "inner.a(good.ptx)"
	run --separate-stderr gpuload extract mixed.a -o out
	[[ $status == 1 && ${#stderr_lines[@]} == 1 && ${#lines[@]} == 2 ]] || show "extract"
	works run mixed.a f64[8]=iota f64[8]=iota f64[8]=iota i32=8
	printf '__CLANG_OFFLOAD_BUNDLE__\x01\x00' > a.hipfb
	fails 1 "code for AMD GPUs" ls a.hipfb
	fails 1 "code for AMD GPUs" run a.hipfb
	fails 1 "no device code found" ls /bin/ls
	[[ $stderr != *whole-archive* ]] || show "advice"
}
