/* known_ptx.c — messages of ptxas, which nvcc, NVRTC, nvJitLink and the driver's JIT compiler contain, too. */
#include "loader/advice/known_internal.h"

#define NOT_ON_THIS_TARGET \
	"this GPU architecture lacks it: compile for one that has it, with its suffix where the instruction needs one (sm_90a, sm_100a, sm_100f)"
#define NEEDS_SYNC \
	"since sm_70 the instruction needs .sync and the mask of its lanes: in CUDA C++ call the _sync form, such as __shfl_sync(0xffffffff, ...)"
#define COMPARE_TYPES "the types after %s are not among those of the PTX ISA for it: check their number, order, size and kind (.f32, .s32, .b32)"

static const struct gpul_known_message ptx[] = {
	/* device code that lacks a definition */
	{ "Undefined reference to '", "' in '<input>'",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	{ "Unresolved extern variable '", "ignoring extern qualifier",
	  "%s is declared extern without nvcc -rdc=true: this file gets a variable of its own; to share one, compile all files with -rdc=true" },
	{ "Unresolved extern function '", "",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -rdc=true (-dc) and "
	  "link the file that defines it" },
	{ "Unresolved extern variable '", "",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -rdc=true (-dc) and "
	  "link the file that defines it" },
	{ "Cannot take address of function '", "",
	  "%s is declared but not defined, so it has no address: define it in this file, or compile "
	  "with nvcc -dc and link the file that defines it" },
	{ "undefined reference to function ", "", /* the software driver reports this */
	  "it is declared but not defined: define %s in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	/* resources of a kernel */
	{ "uses too much shared data", "",
	  "static __shared__ arrays may use 48 KiB (0xc000): for more, declare extern __shared__, set "
	  "cudaFuncAttributeMaxDynamicSharedMemorySize and give the size in the launch" },
	{ "uses too much data for compiler-generated constants", "",
	  "the kernel's literal constants fill a bank: recompile with -Xptxas --disable-optimizer-constants" },
	{ "File uses too much global constant data", "",
	  "all __constant__ variables of a module share 64 KiB: move large tables to __device__ memory" },
	{ "uses too much parameter space", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "Formal parameter space overflowed", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "uses too much local", "", "a thread's arrays are too large: put them into global memory" },
	{ "Register allocation failed with register count of", "",
	  "the function needs more registers than -maxrregcount, __launch_bounds__ or __maxnreg__ leave it: raise the limit, or split the function" },
	{ "Insufficient registers", "to compile instruction",
	  "an instruction needs more registers than -maxrregcount, __launch_bounds__ or __maxnreg__ leave: raise the limit" },
	{ "requires more registers(", "", "the limit of registers (-maxrregcount, __launch_bounds__, __maxnreg__) is too low for it: raise it" },
	{ "Stack size for entry function '", "cannot be statically determined",
	  "recursion, function pointers or virtual calls hide how much stack %s needs: set enough with cudaDeviceSetLimit(cudaLimitStackSize, ...)" },
	{ "bytes stack but limited to", "", "the function's arrays or its recursion need more stack than the limit: use smaller arrays, or global memory" },
	{ "setmaxnreg", "ignored", "setmaxnreg has an effect only in a kernel whose number of threads is fixed: add __launch_bounds__(THREADS) or .reqntid" },
	{ "wgmma.mma_async instructions are serialized", "",
	  "the code is right but slow: between wgmma.fence and wgmma.wait_group the accumulators must stay in registers, with no call, no branch and no other use" },
	{ "Too big maxrregcount value", "", "a thread has at most 255 registers" },
	{ ".minnctapersm will be ignored", "",
	  "__launch_bounds__ asks for more threads per multiprocessor than exist: lower its second number" },
	/* instructions that changed */
	{ "' without '.sync' is", "", NEEDS_SYNC },
	{ "' without '.sync' may produce unpredictable results", "", NEEDS_SYNC },
	{ "' is not supported starting from PTX ISA version", "",
	  "newer PTX versions removed this form: use the one that the PTX ISA names in its place, or a lower .version" },
	{ "is not supported starting ", "and later architectures",
	  "newer GPUs do not have this form: use the one that the PTX ISA names in its place, or compile for the older architecture" },
	{ "Unsupported Function '", "or higher", "newer GPUs do not have %s: use what the CUDA C++ programming guide names in its place" },
	{ "Deprecated feature: '", "not supported as of PTX version", "PTX removed %s: lower .version, or use what the PTX ISA names in its place" },
	{ "Instruction '", "' is deprecated since", "no error yet: a later PTX version removes this form" },
	/* architectures and versions */
	{ "Unsupported gpu architecture '", "",
	  "this CUDA version does not compile for %s: nvcc --list-gpu-arch lists what it supports; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "' is not defined for option 'gpu-name'", "",
	  "this CUDA version does not compile for that GPU: ptxas --help lists the values of --gpu-name; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "PTX .version ", "does not support .target",
	  "the target is newer than this PTX version: raise .version (sm_80 needs 7.0, sm_86 7.1, sm_89 and sm_90 7.8, sm_90a 8.0, sm_100 8.6, sm_120 8.7)" },
	{ "Unsupported .target '", "",
	  "this ptxas has no target %s: check its spelling; ptxas --help lists the values of --gpu-name, and newer GPUs need a newer CUDA version" },
	{ "PTX with .target '", "cannot be compiled for architecture",
	  "PTX for %s does not compile for that GPU: only PTX of a lower or equal sm, without the suffix a or f, does; compile the source for that GPU" },
	{ "Program with .target '", "cannot be compiled to",
	  "PTX whose target ends in a or f compiles only for that GPU or family: compile the source for the new GPU, or for the target without suffix" },
	{ "SM version specified by .target is higher than default", "",
	  "without -arch, ptxas compiles for an older GPU than the PTX is for: add -arch=SM with the .target of the PTX, or a newer GPU" },
	{ "' cannot be compiled for architecture '", "", NOT_ON_THIS_TARGET },
	{ "not supported on .target", "", NOT_ON_THIS_TARGET },
	{ "not supported for gpu architecture", "", "the option has no effect or no meaning for this GPU: leave it out" },
	{ " requires .target ", "", "the instruction needs a newer GPU: compile for the architecture that the message names" },
	{ " requires PTX ISA .version ", "", "raise the number after .version in the PTX, or use a newer compiler" },
	{ "Unsupported .version ", "",
	  "the PTX is newer than this ptxas or driver: update CUDA or the driver, or compile the PTX with an "
	  "older CUDA version" },
	{ "Missing .version directive", "", "PTX begins with .version, .target and .address_size: the file lacks them or is not PTX" },
	{ "Missing .target directive", "", "PTX begins with .version, .target and .address_size: add .target, such as .target sm_90" },
	{ "Target architecture not defined at start", "", "PTX begins with .version, .target and .address_size: add .target, such as .target sm_90" },
	{ "32-Bit compilation is no longer supported", "", "write .address_size 64 in the PTX, and leave out -m32: CUDA 13 compiles 64-bit code only" },
	{ "32-Bit ABI ", "is not supported", "write .address_size 64 in the PTX, and leave out -m32" },
	{ "Bit host architecture (--machine) being used", "", "write .address_size 64 after .target in the PTX, and leave out -m32: host programs are 64-bit" },
	{ "which is conflicting with .address_size", "", "addresses have the size of .address_size: use .u64 registers with .address_size 64" },
	/* the language */
	{ "Unexpected non-ASCII character", "",
	  "PTX is ASCII text: remove what is not, such as a byte order mark at its start or typographic quotes; or the file is not PTX but a binary" },
	{ "Not a name of any known instruction: '", "",
	  "%s is not an instruction of this PTX version: check its spelling and .version" },
	{ "Arguments mismatch for instruction '", "",
	  "the operands of %s have the wrong number or type: compare the line with the PTX ISA" },
	{ "Unexpected instruction types specified for '", "", COMPARE_TYPES },
	{ "Illegal instruction types specified for '", "", COMPARE_TYPES },
	{ "Incorrect instruction type specified for ", "", "the types do not fit the shape: the PTX ISA lists the types of each matrix shape" },
	{ "Unexpected number of instruction types specified for ", "", "matrix instructions name the type of each matrix, such as .f32.f16.f16.f32" },
	{ "Illegal rounding modifier for instruction '", "",
	  "%s takes no such rounding here: integer results take .rni, .rzi, .rmi or .rpi, floating-point results .rn, .rz, .rm or .rp, exact conversions none" },
	{ "Rounding modifier required for instruction '", "",
	  "%s must name its rounding before the types: .rn or .rni rounds to nearest even, .rz or .rzi towards zero" },
	{ "odifier required for instruction '", "", "%s lacks the modifier that the message names; the PTX ISA shows its place, before the types" },
	{ "Illegal modifier '", "", "the instruction has no modifier %s, or not with these types: the PTX ISA lists those of each form" },
	{ "Unsupported modifier '", "", "the instruction has no modifier %s, or not with these types: the PTX ISA lists those of each form" },
	{ "Unknown modifier '", "", "%s is not a modifier of this PTX version: check its spelling and .version" },
	{ "Membar level required", "", "write membar.cta, membar.gl or membar.sys" },
	{ "Illegal vector size", "", "vectors have .v2 or .v4 elements (.v8 on sm_100), together at most 16 bytes (32 on sm_100)" },
	{ "Vector type too large", "", "a vector has at most 16 bytes: .v2 of 8-byte or .v4 of 4-byte elements" },
	{ "ector size mismatch", "", "the braces must contain as many registers as the .v2 or .v4 of the instruction says" },
	{ "Unknown symbol '", "", "%s is not declared before this line of the PTX" },
	{ "Label expected for forward reference of '", "", "%s is used but never declared: declare the register or variable before its use, or add the label" },
	{ "Function '", "not declared in this scope", "declare %s before the call: .func (...) NAME (...);" },
	{ "Call target not recognized", "", "the called function is not declared before this line" },
	{ "Illegal call target, device function expected", "", "call takes a .func: a kernel (.entry) cannot be called" },
	{ "requires call prototype", "", "a call through a register needs its .callprototype as last operand" },
	{ "Call has wrong number of parameters", "", "the call and the declaration of the function differ in the number of parameters" },
	{ "does not match formal parameter '", "", "the argument differs from parameter %s in type or alignment: compare the call with the declaration" },
	{ "Illegal argument for formal parameter '", "", "the argument differs from parameter %s in type or state space: compare the call with the declaration" },
	{ "Duplicate definition of ", "", "the name is defined twice in one scope of the PTX: rename one, or put it into { }" },
	{ "Inconsistent redefinition of", "", "two declarations of the name differ: make type, size, state space and alignment the same" },
	{ "Inconsistent prototypes of '", "", "two declarations of %s differ: make parameters and results the same" },
	{ "Mismatch between declaration and definition of function '", "", "the declaration of %s and its definition differ: make parameters and results the same" },
	{ "State space mismatch between instruction and address", "",
	  "the variable is in another state space than the instruction names: name its own (ld.shared, ld.global), or make a generic address with cvta" },
	{ "State space incorrect for instruction", "", "the instruction does not work in this state space: the PTX ISA lists those that it takes" },
	{ "Entry parameter '", "must have .param", "declare the kernel's parameter as .param" },
	{ "Address expected for argument", "", "the operand must be an address in brackets: [register], [register+number] or [variable]" },
	{ "Illegal to write to function input parameter", "", "parameters are read-only: copy it into a register first" },
	{ "Barrier number '", "out of range", "a block has the barriers 0 to 15" },
	{ "Number of threads participating in barrier must be", "", "the number of threads of a barrier is a multiple of 32" },
	{ "No initial value is allowed", "", "only .global and .const variables have initial values: store the value at the start of the kernel" },
	{ "Parsing error near '", "", "the PTX is malformed before this place: often a semicolon is missing" },
};

/* Texts that other programs print, too. */
static const struct gpul_known_message ptxas[] = {
	{ "Advisory: ", "", "no error: the code works, but is slow on newer GPUs; the message names the better form" },
	{ ", for arch '", "", "this architecture lacks the modifier: the PTX ISA lists the targets of each" },
	{ "Unexpected EOF encountered", "", "the PTX ends in the middle: a } or */ is missing, or the file was cut off" },
	{ "Missing semicolon", "", "an instruction before this place lacks its semicolon" },
	{ "Modifier '", "required for instruction", "add %s to the instruction; the PTX ISA shows its place" },
	{ "Modifier '", "requires modifier", "add the second modifier, or leave out %s" },
	{ "Modifier '", "cannot be", "leave out %s, or the modifier or state space that it does not go with" },
	{ "Duplicate ", "modifier", "a modifier is written twice: remove one" },
	{ "Multiple ", "modifiers specified", "the modifiers contradict each other: keep one" },
	{ "Illegal state space", "", "the instruction does not work in this state space: the PTX ISA lists those that it takes" },
	{ "tate space specified", "", "an access has one state space: .global, .shared, .local, .const, .param, or none for generic addresses" },
	{ "Argument ", "expected to be", "the operand's value is outside of what the instruction takes: the message has the limits" },
	{ "Argument ", "must be", "the operand has the wrong kind: the message names the kind (register, constant, size) that the instruction takes" },
	{ "expected for argument", "", "the operand has the wrong kind: the message names the kind that the instruction takes" },
	{ "Illegal operand type", "", "the operand's register has a type that the instruction does not take: check its .reg declaration" },
	{ "Alignment must be a power of two", "", "write .align 1, 2, 4, 8, 16 ..." },
};
#undef NOT_ON_THIS_TARGET
#undef NEEDS_SYNC
#undef COMPARE_TYPES

const struct gpul_known_table gpul_known_ptx = { NULL, ptx, sizeof ptx / sizeof *ptx };
const struct gpul_known_table gpul_known_ptxas = { "ptxas", ptxas, sizeof ptxas / sizeof *ptxas };
