/* known_ptx.c — messages of ptxas, which is also a part of nvcc, NVRTC, nvJitLink and the driver's JIT compiler. */
#include "loader/advice/known_internal.h"

#define NOT_ON_THIS_TARGET \
	"this GPU architecture lacks the feature: compile for an architecture that has it, with its suffix where the instruction needs " \
	"one (sm_90a, sm_100a, sm_100f)"
#define NEEDS_SYNC \
	"since sm_70 the instruction needs .sync and the mask of its lanes: in CUDA C++ call the _sync form, such as __shfl_sync(0xffffffff, ...)"
#define COMPARE_TYPES "the PTX ISA does not allow these types after %s: check their number, order, size and kind (.f32, .s32, .b32)"

static const struct gpul_known_message ptx[] = {
	/* errors about device code that lacks a definition */
	{ "Undefined reference to '", "' in '<input>'",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	{ "Unresolved extern variable '", "ignoring extern qualifier",
	  "%s is declared extern without nvcc -rdc=true: this file gets a variable of its own; to share one, compile all files with "
	  "-rdc=true" },
	{ "Unresolved extern function '", "",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -rdc=true (-dc) and "
	  "link the file that defines it" },
	{ "Unresolved extern variable '", "",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -rdc=true (-dc) and "
	  "link the file that defines it" },
	{ "Cannot take address of function '", "",
	  "%s is declared but not defined, so it has no address: define it in this file, or compile "
	  "with nvcc -dc and link the file that defines it" },
	{ "undefined reference to function ", "", /* a message of the software driver */
	  "the function is declared but not defined: define %s in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
	/* errors about the resources of a kernel */
	{ "uses too much shared data", "",
	  "static __shared__ arrays may use 48 KiB (0xc000): for more, declare extern __shared__, set "
	  "cudaFuncAttributeMaxDynamicSharedMemorySize and give the size in the launch" },
	{ "uses too much data for compiler-generated constants", "",
	  "the literal constants of the kernel do not fit into their constant bank: recompile with -Xptxas --disable-optimizer-constants" },
	{ "File uses too much global constant data", "",
	  "all __constant__ variables of a module share 64 KiB: move large tables to __device__ memory" },
	{ "uses too much parameter space", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "Formal parameter space overflowed", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "uses too much local", "", "a thread's arrays are too large: put them into global memory" },
	{ "Register allocation failed with register count of", "",
	  "the function needs more registers than -maxrregcount, __launch_bounds__ or __maxnreg__ allows: raise the limit, or split "
	  "the function" },
	{ "Insufficient registers", "to compile instruction",
	  "an instruction needs more registers than -maxrregcount, __launch_bounds__ or __maxnreg__ allows: raise the limit" },
	{ "requires more registers(", "",
	  "the limit of registers (-maxrregcount, __launch_bounds__, __maxnreg__) is too low for this function: raise the limit" },
	{ "Stack size for entry function '", "cannot be statically determined",
	  "recursion, function pointers or virtual calls hide how much stack %s needs: set enough with "
	  "cudaDeviceSetLimit(cudaLimitStackSize, ...)" },
	{ "bytes stack but limited to", "",
	  "the function's arrays or its recursion need more stack than the limit: use smaller arrays, or global memory" },
	{ "setmaxnreg", "ignored",
	  "setmaxnreg has an effect only in a kernel whose number of threads is fixed: add __launch_bounds__(THREADS) or .reqntid" },
	{ "wgmma.mma_async instructions are serialized", "",
	  "the code is right but slow: between wgmma.fence and wgmma.wait_group the accumulators must stay in registers, with no call, "
	  "no branch and no other use" },
	{ "Too big maxrregcount value", "", "a thread has at most 255 registers" },
	{ ".minnctapersm will be ignored", "",
	  "__launch_bounds__ requests more threads per multiprocessor than exist: lower its second number" },
	/* errors about instructions that changed */
	{ "' without '.sync' is", "", NEEDS_SYNC },
	{ "' without '.sync' may produce unpredictable results", "", NEEDS_SYNC },
	{ "' is not supported starting from PTX ISA version", "",
	  "newer PTX versions removed this form: use the one that the PTX ISA names in its place, or a lower .version" },
	{ "is not supported starting ", "and later architectures",
	  "newer GPUs do not have this form: use the one that the PTX ISA names in its place, or compile for the older architecture" },
	{ "Unsupported Function '", "or higher", "newer GPUs do not have %s: use what the CUDA C++ programming guide names in its place" },
	{ "Deprecated feature: '", "not supported as of PTX version",
	  "PTX removed %s: lower .version, or use what the PTX ISA names in its place" },
	{ "Instruction '", "' is deprecated since", "not an error yet: a later PTX version removes this form" },
	/* errors about architectures and versions */
	{ "Unsupported gpu architecture '", "",
	  "this CUDA version does not compile for %s: nvcc --list-gpu-arch lists what it supports; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "' is not defined for option 'gpu-name'", "",
	  "this CUDA version does not compile for that GPU: ptxas --help lists the values of --gpu-name; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "PTX .version ", "does not support .target",
	  "the target is newer than this PTX version: raise .version (sm_80 needs 7.0, sm_86 7.1, sm_89 and sm_90 7.8, sm_90a 8.0, "
	  "sm_100 8.6, sm_120 8.7)" },
	{ "Unsupported .target '", "",
	  "this ptxas has no target %s: check its spelling; ptxas --help lists the values of --gpu-name, and newer GPUs need a newer "
	  "CUDA version" },
	{ "PTX with .target '", "cannot be compiled for architecture",
	  "PTX for %s does not compile for that GPU: only PTX of a lower or equal sm, without the suffix a or f, does; compile the "
	  "source for that GPU" },
	{ "Program with .target '", "cannot be compiled to",
	  "PTX whose target ends in a or f compiles only for that GPU or family: compile the source for the new GPU, or for the target "
	  "without suffix" },
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
	{ "Target architecture not defined at start", "",
	  "PTX begins with .version, .target and .address_size: add .target, such as .target sm_90" },
	{ "32-Bit compilation is no longer supported", "",
	  "write .address_size 64 in the PTX, and leave out -m32: CUDA 13 compiles 64-bit code only" },
	{ "32-Bit ABI ", "is not supported", "write .address_size 64 in the PTX, and leave out -m32" },
	{ "Bit host architecture (--machine) being used", "",
	  "write .address_size 64 after .target in the PTX, and leave out -m32: host programs are 64-bit" },
	{ "which is conflicting with .address_size", "",
	  "addresses have the size of .address_size: use .u64 registers with .address_size 64" },
	/* errors of PTX syntax */
	{ "Unexpected non-ASCII character", "",
	  "PTX is ASCII text: remove what is not, such as a byte order mark at its start or typographic quotes; or the file is not PTX "
	  "but a binary" },
	{ "Not a name of any known instruction: '", "", "%s is not an instruction of this PTX version: check its spelling and .version" },
	{ "Arguments mismatch for instruction '", "",
	  "the operands of %s have the wrong number or type: compare the line with the PTX ISA" },
	{ "Unexpected instruction types specified for 'm", "",
	  "m%s of integers needs .lo, .hi or .wide before its type, as in mul.lo.s32; or the PTX ISA does not allow the type" },
	{ "Unexpected instruction types specified for '", "", COMPARE_TYPES },
	{ "Illegal instruction types specified for '", "", COMPARE_TYPES },
	{ "Incorrect instruction type specified for ", "",
	  "the types do not fit the shape: the PTX ISA lists the types of each matrix shape" },
	{ "Unexpected number of instruction types specified for ", "",
	  "matrix instructions name the type of each matrix, such as .f32.f16.f16.f32" },
	{ "Illegal rounding modifier for instruction '", "",
	  "%s does not accept this rounding here: integer results take .rni, .rzi, .rmi or .rpi, floating-point results .rn, .rz, .rm or "
	  ".rp, exact conversions none" },
	{ "Rounding modifier required for instruction '", "",
	  "%s must name its rounding before the types: .rn or .rni rounds to nearest even, .rz or .rzi towards zero" },
	{ "odifier required for instruction '", "",
	  "%s lacks the modifier that the message names; the PTX ISA shows its place, before the types" },
	{ "Illegal modifier '", "",
	  "the instruction does not have modifier %s, or does not accept it with these types: the PTX ISA lists those of each form" },
	{ "Unsupported modifier '", "",
	  "the instruction does not have modifier %s, or does not accept it with these types: the PTX ISA lists those of each form" },
	{ "Unknown modifier '", "", "%s is not a modifier of this PTX version: check its spelling and .version" },
	{ "Membar level required", "", "write membar.cta, membar.gl or membar.sys" },
	{ "Illegal vector size", "", "vectors can have .v2 or .v4 elements (.v8 on sm_100), of at most 16 bytes together (32 on sm_100)" },
	{ "Vector type too large", "", "a vector has at most 16 bytes: .v2 of 8-byte or .v4 of 4-byte elements" },
	{ "ector size mismatch", "", "the braces must contain as many registers as the .v2 or .v4 of the instruction says" },
	{ "Unknown symbol '", "", "%s is not declared before this line of the PTX" },
	{ "Label expected for forward reference of '", "",
	  "%s is used but never declared: declare the register or variable before its use, or add the label" },
	{ "Function '", "not declared in this scope", "declare %s before the call: .func (...) NAME (...);" },
	{ "Call target not recognized", "", "the called function is not declared before this line" },
	{ "Illegal call target, device function expected", "", "call takes a .func: a kernel (.entry) cannot be called" },
	{ "requires call prototype", "",
	  "a called function must be declared before the call, with .func; a call through a register needs a .callprototype as its last "
	  "operand" },
	{ "Call has wrong number of parameters", "", "the call and the declaration of the function differ in the number of parameters" },
	{ "does not match formal parameter '", "",
	  "the argument differs from parameter %s in type or alignment: compare the call with the declaration" },
	{ "Illegal argument for formal parameter '", "",
	  "the argument differs from parameter %s in type or state space: compare the call with the declaration" },
	{ "Duplicate definition of ", "", "the name is defined twice in one scope of the PTX: rename one definition, or put it into { }" },
	{ "Inconsistent redefinition of", "", "two declarations of the name differ: make type, size, state space and alignment the same" },
	{ "Inconsistent prototypes of '", "", "two declarations of %s differ: make parameters and results the same" },
	{ "Mismatch between declaration and definition of function '", "",
	  "the declaration of %s and its definition differ: make parameters and results the same" },
	{ "State space mismatch between instruction and address", "",
	  "the variable is in a different state space: use the one that it is declared in (ld.shared, ld.global), or cvta and then ld or "
	  "st without a state space" },
	{ "State space incorrect for instruction", "",
	  "the instruction does not work in this state space: the PTX ISA lists those that it takes" },
	{ "Entry parameter '", "must have .param", "declare the kernel's parameter as .param" },
	{ "Address expected for argument", "", "the operand must be an address in brackets: [register], [register+number] or [variable]" },
	{ "Illegal to write to function input parameter", "", "parameters are read-only: copy the parameter into a register first" },
	{ "Barrier number '", "out of range", "a block has barriers 0 to 15: use one of these" },
	{ "Number of threads participating in barrier must be", "", "the number of threads of a barrier must be a multiple of 32" },
	{ "No initial value is allowed", "",
	  "only .global and .const variables have initial values: store the value at the start of the kernel" },
	{ "Parsing error near ''", "", "the PTX ends in the middle: a } is missing, or the file was cut off" },
	{ "Parsing error near '", "", "the PTX is malformed before this place: often a semicolon is missing" },
};

/* Texts that other programs also print. */
/* clang-format off */
static const struct gpul_known_message ptxas[] = {
	{ "Vector with elements of different types", "", "all registers in {...} must have the same type: the type of the instruction, "
							 "or .b of its size" },
	{ "Incompatible elements of vector expression", "", "all registers in {...} must have the same type: the type of the "
							    "instruction, or .b of its size" },
	{ "Result vector expected", "", "the result of this form is a vector: write as many registers in {...} as the instruction "
					"returns" },
	{ " as address operand. Use integer or bit only", "", "an address must be in a register of type .u64, .s64 or .b64 (.u32 or .b32 for .shared): copy it with mov.b64" },
	{ "Illegal expression '", "", "%s cannot be an operand here: load the address of a variable with mov first, and use the register" },
	{ "Conflicting directives: .maxntid and .reqntid", "", "keep one: .reqntid fixes the size of a block, .maxntid limits it" },
	{ "Initial value type mismatch", "", "write the values of .f32 and .f64 variables as 1.0 or 0f3F800000, and those of integer "
					     "variables as 1" },
	{ "Multiple comparisons set", "", "the instruction has two comparisons, such as .lt and .eq: keep one" },
	{ "Multiple ", " specified", "the instruction has two modifiers of one kind, such as two types, state spaces or comparisons: keep one" },
	{ "Unexpected number of '", "", "the instruction has too many or too few modifiers of this kind: the PTX ISA's section on it lists its forms" },
	{ "requires scope with", "", "add the scope after the memory order: .cta, .cluster, .gpu or .sys" },
	{ "requires memory order with", "", "a scope needs a memory order before it, such as .relaxed, .acquire or .release" },
	{ "requires order with", "", "a scope needs a memory order before it, such as .relaxed, .acquire or .release" },
	{ "Non-generic address is not supported", "", "the instruction takes generic addresses only: convert the address with cvta" },
	{ "Unknown field '", "", "this register has no part %s: vectors have .x .y .z .w, video instructions .b0 to .b3, .h0 and .h1" },
	{ "Ptx assembly aborted due to errors", "", "the lines above this one say why" },
	{ "has unresolved external reference", "", "not an error while a single file is compiled: the link needs the file that defines "
						   "the function (nvcc -rdc=true)" },
	{ "Memory allocation failure", "", "memory ran out: run fewer jobs (make -j), or compile for fewer architectures at a time" },
	{ "Advisory: ", "", "not an error: the code works, but is slow on newer GPUs; the message names the better form" },
	{ ", for arch '", "", "this architecture lacks the modifier: the PTX ISA lists the targets of each" },
	{ "Unexpected EOF encountered", "", "the PTX ends in the middle: a } or */ is missing, or the file was cut off" },
	{ "Missing semicolon", "", "an instruction before this place lacks its semicolon" },
	{ "Modifier '", "required for instruction", "add %s to the instruction; the PTX ISA shows its place" },
	{ "Modifier '", "requires modifier", "add the second modifier, or leave out %s" },
	{ "Modifier '", "cannot be", "leave out %s, or the modifier or state space that it cannot be combined with" },
	{ "Duplicate ", "modifier", "a modifier is given twice: remove one of the two" },
	{ "Illegal state space", "", "the instruction does not work in this state space: the PTX ISA lists those that it takes" },
	{ "tate space specified", "", "an access can have only one state space: .global, .shared, .local, .const, .param, or none for "
				      "generic addresses" },
	{ "Argument ", "expected to be", "the operand's value is outside of what the instruction takes: the message states the limits" },
	{ "Argument ", "must be", "the operand has the wrong kind: the message names the kind (register, constant, size) that the instruction takes" },
	{ "expected for argument", "", "the operand has the wrong kind: the message names the kind that the instruction takes" },
	{ "Illegal operand type", "", "the operand's register has a type that the instruction does not take: check its .reg declaration" },
	{ "Alignment must be a power of two", "", "write .align 1, 2, 4, 8, 16 ..." },
	{ "will be ignored", "", "not an error: ptxas ignores what the message names in this place; leave it out" },
	{ "gnoring pragma", "", "not an error: this ptxas does not know the pragma, or does not accept it in this place, and ignores it" },
	{ "' modifier on instruction ", "is deprecated", "not an error yet: a later PTX version removes this form" },
	{ "is deprecated and will soon be removed", "", "not an error yet: use the replacement that the message names" },
	{ "may produce unexpected results", "", "this form behaves differently on newer GPUs: use the form that the PTX ISA gives for "
						"them" },
	{ "Potential out of bound access", "", "the access may go beyond the variable: compare the variable's size with the offset and "
					       "width of the access" },
	{ "ragma", "", "the PTX ISA lists the pragmas, their values, and whether they belong in a module, a kernel or a function" },
	{ "alias", "", ".alias NAME, FUNCTION; gives a second name to a .func that this module defines with the same parameters, no kernel, variable or alias" },
	{ "macro", "", "a macro or its call is malformed: compare the names and the number of its parameters" },
	{ "onditional", "Ill formed", "an .IF lacks its condition or its .ENDIF" },
	{ "elector", "", "video instructions select part of an operand with .b0 to .b3, .h0 or .h1: the PTX ISA says which operands have "
			 "one" },
	{ "ideo instruction", "", "video instructions have a first and a second operation: the PTX ISA lists which go together" },
	{ "Indirect access to ", "", "the handle of a texture, sampler or surface must be in a .u64 register" },
	{ ".samplerref", "expected", "the operand must be a .texref, .samplerref or .surfref, or a .u64 register with a handle" },
	{ ".surfref", "expected", "the operand must be a .texref, .samplerref or .surfref, or a .u64 register with a handle" },
	{ ".texref", "expected", "the operand must be a .texref, .samplerref or .surfref, or a .u64 register with a handle" },
	{ ".texref", "", "textures in PTX: with .texmode_independent an instruction also takes a .samplerref, with .texmode_unified it does not" },
	{ "texmode_", "", "textures in PTX: with .texmode_independent an instruction also takes a .samplerref, with .texmode_unified it does not" },
	{ "exture", "must be", "texture, sampler and surface variables must be .global and declared outside of functions, or be "
			       "parameters of a kernel" },
	{ "initial", "", "an initial value must be a constant of the variable's type; for arrays, in { } and with no more elements than "
			 "the array has" },
	{ "ncomplete", "", "give the array its size: only .extern .shared arrays and the last parameter may have none" },
	{ "Module-scoped variables in ", "", "declare .reg and .local variables inside of a function" },
	{ "Illegal scope for variable '", "", "declare %s where its state space is allowed: .reg, .local and .param inside of functions, .const and .global outside" },
	{ "Parameter variables m", "", "declare .param variables in the parentheses of .entry or .func, or in the body of a .func or around a call" },
	{ "redicate", "", "a condition must be a single .pred register, as in @p1 and setp.lt.s32 p1, r1, r2" },
	{ "Operation requires .pred type", "", "a condition must be a .pred register: set it with setp" },
	{ "pecial register", "", "special registers are read-only, and only mov can read them: mov.u32 %r1, %tid.x" },
	{ "map_f64_to_f32", "", "the directive is for GPUs of sm_1x only: leave it out, and write a .target of sm_50 or newer" },
	{ "Double is not supported", "", "write a .target of sm_13 or newer: older GPUs do not support double" },
	{ "address_size directive", "", "write .address_size 64" },
	{ "onstant expression", "", "the value must be a constant integer expression, without division by zero" },
	{ "Constant overflow", "", "the number does not fit into its type" },
	{ "out of range for type", "", "the number does not fit into its type" },
	{ "Conflicting .target option", "", ".target must have one architecture, and options that do not contradict each other" },
	{ "Sink '_'", "", "only some operands may be _, which discards the result: the PTX ISA says which" },
	{ "Input file '", "could not be opened", "%s was not found or cannot be read" },
	{ "Array indexing on non-array", "", "the variable is not declared as an array: .b32 name[16]" },
	{ "rray index", "", "an array index must be a constant or a 32-bit register: array[5], array[%r1]" },
	{ ".extern", "", "a declaration as .extern and the definition must be the same in type and linkage" },
	{ "Unimplemented feature", "", "this ptxas does not support this feature: leave it out, or use another CUDA version" },
	{ "is not yet implemented", "", "this ptxas does not support this feature: leave it out, or use another CUDA version" },
	{ "Illegal to take address of parameter", "", "copy the parameter into a .local variable, and take the address of that" },
	{ "Illegal branch target", "", "bra can jump only to a label of the same function" },
	{ "has illegal alignment", "", "write .align 1, 2, 4, 8, 16, 32, 64 or 128" },
	{ "Alignment value too large", "", "write a smaller .align" },
	{ "space", "", "the variable or operand is in a state space that is not allowed there: the PTX ISA lists those of each instruction and directive" },
	{ "shape '", "", "the PTX ISA lists which types, layouts and numbers of registers go with each matrix shape" },
	{ "irective '", "", "the PTX ISA says which directives a module, a kernel and a function may have, and which need another" },
	{ ".debug", "", "the PTX lacks the debug information that its .target debug requires: leave out debug, or compile with -g" },
	{ "Modifier '", "appl", "leave out %s: it does not exist for this type or form" },
	{ "Illegal combination of", "", "leave out one of the modifiers: they cannot be combined" },
	{ "negation", "", "only some operands may be negated: negate the value into a register first" },
	{ "Illegal argument to unary minus", "", "only some operands may be negated: negate the value into a register first" },
	{ "reserved", "", "registers and shared memory that the ABI or the driver uses cannot be used here: choose others" },
	{ "specified multiple times", "", "keep one of the two" },
	{ ".loc", "", "line information is malformed: a .loc must name a declared .file, and inlined_at must name an earlier .loc" },
	{ "coordinates required", "", "texture coordinates must be .f32 or .s32, as the second type of the instruction says" },
	{ "expected for ", "", "the operand or value has the wrong kind: the message names the kind that is needed" },
	{ " instruction ", "", "the PTX ISA's section on the instruction lists its forms: compare modifiers, types and operands" },
	{ "nstruction '", "", "the PTX ISA's section on %s lists its forms: compare modifiers, types and operands" },
};
/* clang-format on */
#undef NOT_ON_THIS_TARGET
#undef NEEDS_SYNC
#undef COMPARE_TYPES

const struct gpul_known_table gpul_known_ptx = { NULL, ptx, sizeof ptx / sizeof *ptx };
const struct gpul_known_table gpul_known_ptxas = { "ptxas", ptxas, sizeof ptxas / sizeof *ptxas };
