/* cooperative.c — PTX of the functions of libcudadevrt for cooperative groups.
 *
 * NVIDIA's versions of these functions call NVIDIA's driver. A grid's handle is the address of its workspace, which a cooperative launch
 * passes in %envreg1 and %envreg2: word 0 is the size of the workspace, word 1 the barrier. One thread of each block adds 1 to the
 * barrier, and block 0 adds a larger number, so that the sum of all blocks flips bit 31; all threads wait until the bit changes.
 *
 * Source: declarations in cuda_device_runtime_api.h; CUDA C++ Programming Guide, Cooperative Groups */
#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"

#define BLOCKS /* sets %n: blocks of the grid; %b: index of the block; %t: index of the thread in the block */ \
	"\t.reg .b32 %n, %b, %t, %x, %y;\n" \
	"\tmov.u32 %x, %nctaid.x; mov.u32 %y, %nctaid.y; mul.lo.u32 %n, %x, %y;\n" \
	"\tmov.u32 %b, %ctaid.z; mul.lo.u32 %b, %b, %y; mov.u32 %y, %ctaid.y; add.u32 %b, %b, %y; \n" \
	"\tmov.u32 %y, %ctaid.x; mad.lo.u32 %b, %b, %x, %y;\n" \
	"\tmov.u32 %x, %nctaid.z; mul.lo.u32 %n, %n, %x;\n" \
	"\tmov.u32 %t, %tid.z; mov.u32 %x, %ntid.y; mov.u32 %y, %tid.y; mad.lo.u32 %t, %t, %x, %y;\n" \
	"\tmov.u32 %x, %ntid.x; mov.u32 %y, %tid.x; mad.lo.u32 %t, %t, %x, %y;\n"

#define SYNCHRONIZE /* synchronizes all threads of the grid; %h contains the handle of the grid */ \
	"\t.reg .pred %p, %q;\n\t.reg .b32 %add, %old, %now;\n" \
	"\tbarrier.sync 0;\n" \
	"\tsetp.ne.u32 %p, %t, 0;\n\t@%p bra DONE;\n" \
	"\tmov.u32 %add, 1;\n\tsetp.ne.u32 %q, %b, 0;\n\t@%q bra ADD;\n" \
	"\tsub.u32 %add, 0x80000001, %n;\n" \
	"ADD:\n\tmembar.gl;\n\tatom.global.add.u32 %old, [%h + 4], %add;\n" \
	"WAIT:\n\tld.volatile.global.u32 %now, [%h + 4];\n\txor.b32 %now, %now, %old;\n" \
	"\tsetp.ge.s32 %q, %now, 0;\n\t@%q bra WAIT;\n\tmembar.gl;\n" \
	"DONE:\n\tbarrier.sync 0;\n"

const char jl_cooperative_groups[] =
	".version 6.0\n.target sm_60\n.address_size 64\n"
	".visible .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope)\n{\n"
	"\t.reg .b32 %scope, %low, %high;\n\t.reg .b64 %h;\n\t.reg .pred %p;\n"
	"\tld.param.u32 %scope, [scope];\n\tmov.u32 %high, %envreg1;\n\tmov.u32 %low, %envreg2;\n"
	"\tmov.b64 %h, {%low, %high};\n\tsetp.ne.u32 %p, %scope, 1;\n\tselp.b64 %h, 0, %h, %p;\n"
	"\tst.param.b64 [r], %h;\n\tret;\n}\n"
	".visible .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags)\n{\n"
	"\t.reg .b64 %h;\n\tld.param.u64 %h, [handle];\n" BLOCKS SYNCHRONIZE "\tst.param.b32 [r], 0;\n\tret;\n}\n"
	".visible .func (.param .b32 r) cudaCGSynchronizeGrid(.param .b64 handle, .param .b32 flags)\n{\n"
	"\t.reg .b64 %h;\n\tld.param.u64 %h, [handle];\n" BLOCKS SYNCHRONIZE "\tst.param.b32 [r], 0;\n\tret;\n}\n"
	".visible .func (.param .b32 r) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle)\n{\n"
	"\t.reg .b64 %a;\n" BLOCKS "\tmov.u32 %x, %ntid.x; mul.lo.u32 %n, %n, %x; mov.u32 %x, %ntid.y; mul.lo.u32 %n, %n, %x;\n"
	"\tmov.u32 %x, %ntid.z; mul.lo.u32 %n, %n, %x;\n"
	"\tld.param.u64 %a, [threads];\n\tst.u32 [%a], %n;\n\tst.param.b32 [r], 0;\n\tret;\n}\n"
	".visible .func (.param .b32 r) cudaCGGetRank(.param .b64 threads, .param .b64 grids, .param .b64 handle)\n{\n"
	"\t.reg .b64 %a;\n" BLOCKS "\tmov.u32 %x, %ntid.x; mul.lo.u32 %b, %b, %x; mov.u32 %x, %ntid.y; mul.lo.u32 %b, %b, %x;\n"
	"\tmov.u32 %x, %ntid.z; mad.lo.u32 %b, %b, %x, %t;\n"
	"\tld.param.u64 %a, [threads];\n\tst.u32 [%a], %b;\n\tst.param.b32 [r], 0;\n\tret;\n}\n";
