#!/usr/bin/env bats
# link.bats — gpuload run of a kernel of relocatable PTX: only what the kernel reaches is linked.
load ../helper

setup_file() {
	export head=$'.version 7.0\n.target sm_75\n.address_size 64\n'
}

@test "code that the kernel does not reach may lack definitions" {
	[[ $GPULOAD_DRIVER == soft ]] || skip "only the software driver links PTX to PTX"
	cat > kernels.ptx <<-END
		$head
		.extern .func (.param .b32 r) seven();
		.extern .func missing();
		.visible .entry k(.param .u64 p)
		{
			.reg .b64 %rd<2>;
			.reg .b32 %r<2>;
			.param .b32 r;
			ld.param.u64 %rd1, [p];
			call.uni (r), seven, ();
			ld.param.b32 %r1, [r];
			st.global.u32 [%rd1], %r1;
			ret;
		}
		.visible .entry other()
		{
			call.uni missing;
			ret;
		}
	END
	cat > functions.ptx <<-END
		$head
		.visible .func (.param .b32 r) seven() { st.param.b32 [r], 7; ret; }
		.extern .func missing_too();
		.visible .func unused() { call.uni missing_too; ret; }
	END
	works run kernels.ptx functions.ptx --kernel k --grid 1 --block 1 "out:u32[1]" --expect 0=7
	run --separate-stderr gpuload run kernels.ptx functions.ptx --kernel k --explain
	[[ $status == 0 && $stderr == *"left out 2 functions that the kernel does not reach, and 0 "* ]] || show "should explain"
	says "assumed   gpuload run kernels.ptx functions.ptx --kernel k --grid"
	fails 1 "missing" run kernels.ptx functions.ptx --kernel other --grid 1 --block 1
	fails 2 "no kernel" run kernels.ptx functions.ptx --kernel neither --grid 1 --block 1
}

@test "large functions that only a table refers to fail when they are called, unless --link-all is given" {
	[[ $GPULOAD_DRIVER == soft ]] || skip "only the software driver links PTX to PTX"
	cat > kernel.ptx <<-END
		$head
		.extern .global .align 8 .u64 table[2];
		.visible .entry k(.param .u64 p, .param .u32 index, .param .u32 calls)
		{
			.reg .b64 %rd<5>;
			.reg .b32 %r<3>;
			.reg .pred %p<2>;
			ld.param.u64 %rd1, [p];
			ld.param.u32 %r1, [index];
			ld.param.u32 %r2, [calls];
			mul.wide.u32 %rd2, %r1, 8;
			mov.u64 %rd3, table;
			add.u64 %rd2, %rd2, %rd3;
			ld.global.u64 %rd4, [%rd2];
			setp.eq.u32 %p1, %r2, 0;
			@%p1 bra done;
			{
				.param .b64 q;
				st.param.b64 [q], %rd1;
			prototype: .callprototype ()_ (.param .b64 _);
				call %rd4, (q), prototype;
			}
		done:
			st.global.u32 [%rd1 + 4], 1;
			ret;
		}
	END
	{
		echo "$head"
		for i in 0 1; do
			echo ".visible .func f$i(.param .b64 q) { .reg .b64 %rd<2>;"
			head -c 9000000 /dev/zero | tr '\0' ' '
			echo "ld.param.b64 %rd1, [q]; st.global.u32 [%rd1], 4$i; ret; }"
		done
		echo ".visible .global .align 8 .u64 table[2] = { f0, f1 };"
	} > table.ptx
	works run kernel.ptx table.ptx --kernel k --grid 1 --block 1 "inout:u32[2]=0" u32=1 u32=0 --expect 0=sum:1
	fails 1 "gpuload:1: a function that only a table refers to: assertion \`it was linked (--link-all links it)' failed" \
		run kernel.ptx table.ptx --kernel k --grid 1 --block 1 "inout:u32[2]=0" u32=1 u32=1
	works run kernel.ptx table.ptx --kernel k --grid 1 --block 1 "inout:u32[2]=0" u32=1 u32=1 --link-all --expect 0=sum:42
}
