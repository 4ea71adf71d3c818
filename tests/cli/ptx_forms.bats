#!/usr/bin/env bats
# ptx_forms.bats — forms of PTX that few compilers write, and that ptxas accepts.
load helper

# run_form NAME ARG...: run ptx/NAME.ptx on the software driver; if ptxas is installed, it must accept the file.
run_form() {
	if command -v ptxas >/dev/null; then
		ptxas -arch=sm_75 "$ptx/$1.ptx" -o form.cubin
	fi
	works run "$ptx/$1.ptx" "${@:2}" --driver soft
}

@test "an array is indexed by a constant or by the lower 32 bits of a register" {
	run_form index 'out:u64[32]' --block 4 --save 0=out.bin
	[[ $(od -An -v -tu8 -w64 out.bin | tr -s ' ' | sed 's/^ //') == "0 10 10 1 0 20 40 0
7 20 20 2 1 30 40 8
14 30 30 4 2 40 40 16
21 40 40 8 3 50 40 24" ]] || show "wrong: $(od -An -v -tu8 -w64 out.bin)"
}

@test "the offset of an element has 32 bits, as with ptxas" {
	run_form index_wrap 'out:u64[4]' --block 1
	says "out:u64[4]: 8 8 4294967288 4294967288"
}

@test "an index that is no integer register is refused" {
	sed 's/tab\[%h0\]/tab[nothing]/' "$ptx/index.ptx" >undeclared.ptx
	run gpuload ls undeclared.ptx
	[[ $status == 1 && $output == *"'nothing' is not declared"* ]] || show "should name the index"
	sed 's/\.reg \.s16 %h<2>/.reg .f32 %h<2>/; /cvt.u16/d' "$ptx/index.ptx" >float.ptx
	run gpuload run float.ptx 'out:u64[32]' --block 4
	[[ $status == 1 && $output == *"'%h0' cannot be an index: expected a constant or an integer register"* ]] || show "should say what is expected"
}

@test "a vector register is passed to a function and returned as a whole" {
	run_form vector_params 'out:u64[4]' --block 1
	says "out:u64[4]: 22 11 41 6"
}

@test "texts without .address_size, with names for ranges of variables, prototypes without a semicolon, and aliases run" {
	run_form old_forms 'out:u32[6]' --block 1
	says "out:u32[6]: 42 42 5 6 7 42"
}

@test "a byte order mark is named" {
	printf '\xEF\xBB\xBF' | cat - "$ptx/index.ptx" >bom.ptx
	run gpuload ls bom.ptx
	[[ $status == 1 && $output == *"byte order mark (EF BB BF)"* ]] || show "should name the byte order mark"
}

@test "a range of variables is declared once" {
	sed 's/^\.global .u32 g<2>;/&\n.global .u32 g1;/' "$ptx/old_forms.ptx" >twice.ptx
	run gpuload ls twice.ptx
	[[ $status == 1 && $output == *"'g1' is declared twice"* ]] || show "should name the variable"
}
