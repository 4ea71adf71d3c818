/* advice.c — the table of known messages.  tests/loader/pitfalls provokes each message with the
 * installed tools. */
#include "loader/advice/advice.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"

/* A message is recognised by a part of it and by a second part that follows on the same line.  The name
 * that the message is about follows the first part.  If two rows are found at one position, the first row counts. */
static const struct known_message {
	const char *part, *and_part; /* and_part "": there is no second part */
	const char *advice;          /* %s stands for the name */
} known[] = {
	/* device code that lacks a definition */
	{ "Undefined reference to '", "' in '<input>'",
	  "%s is declared but not defined: define it in this file, or compile with nvcc -dc and link "
	  "the file that defines it" },
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
	{ "Undefined reference to '", "",
	  "no linked file defines %s: add the file that does" },
	{ "Multiple definition of '", "",
	  "several linked files define %s: keep one definition, or declare it static or inline" },
	/* resources of a kernel */
	{ "uses too much shared data", "",
	  "static __shared__ arrays may use 48 KiB (0xc000): for more, declare extern __shared__, set "
	  "cudaFuncAttributeMaxDynamicSharedMemorySize and give the size in the launch" },
	{ "File uses too much global constant data", "",
	  "all __constant__ variables of a module share 64 KiB: move large tables to __device__ memory" },
	{ "uses too much parameter space", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "Formal parameter space overflowed", "",
	  "kernel parameters may use 32,764 bytes (4,352 before CUDA 12.1): pass a pointer to a large struct" },
	{ "uses too much local", "", "a thread's arrays are too large: put them into global memory" },
	/* architectures */
	{ "Unsupported gpu architecture '", "",
	  "this CUDA version does not compile for %s: nvcc --list-gpu-arch lists what it supports; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "' is not defined for option 'gpu-name'", "",
	  "this CUDA version does not compile for that GPU: ptxas --help lists the values of --gpu-name; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "' is not defined for option 'gpu-architecture'", "",
	  "this CUDA version does not compile for that GPU: nvcc --list-gpu-arch lists what it supports" },
	{ "invalid value for --gpu-architecture", "",
	  "this NVRTC does not compile for that GPU: nvrtcGetSupportedArchs() lists what it supports; older "
	  "GPUs need an older CUDA version" },
	{ "Incompatible code generation requested", "",
	  "code=sm_N needs arch=compute_M with M of at most N" },
	{ "Cannot find valid GPU for '-arch=native'", "",
	  "no GPU was found, so nvcc chose its default architecture: name one, such as -arch=sm_90" },
	{ "not supported on .target", "",
	  "the instruction needs another GPU: compile for an architecture that has it, with its suffix where "
	  "the instruction needs one (sm_90a, sm_100a, sm_100f)" },
	{ " requires .target ", "",
	  "the instruction needs a newer GPU: compile for the architecture that the message names" },
	{ " requires PTX ISA .version ", "",
	  "raise the number after .version in the PTX, or use a newer compiler" },
	{ "Unsupported .version ", "",
	  "the PTX is newer than this ptxas or driver: update CUDA or the driver, or compile the PTX with an "
	  "older CUDA version" },
	{ "' arch does not match target '", "",
	  "a file was compiled for another architecture: compile all files with the same -arch" },
	{ "ERROR 4: bad input:", "",
	  "nvJitLink cannot use this file: it may be compiled for another architecture than -arch" },
	/* PTX */
	{ "Not a name of any known instruction: '", "",
	  "%s is not an instruction of this PTX version: check its spelling and .version" },
	{ "Arguments mismatch for instruction '", "",
	  "the operands of %s have the wrong number or type: compare the line with the PTX ISA" },
	{ "Unknown symbol '", "", "%s is not declared before this line of the PTX" },
	{ "Parsing error near '", "", "the PTX is malformed before this place: often a semicolon is missing" },
	{ "Too big maxrregcount value", "", "a thread has at most 255 registers" },
	{ ".minnctapersm will be ignored", "",
	  "__launch_bounds__ asks for more threads per multiprocessor than exist: lower its second number" },
	/* CUDA C++ */
	{ "identifier \"", "is undefined in device code",
	  "declare the function or variable __device__ to use it in a kernel" },
	{ "The experimental flag '--expt-relaxed-constexpr'", "",
	  "compile with --expt-relaxed-constexpr, or use a __device__ function such as max() or cuda::std::max()" },
	{ "calling a __host__ function(", "", "a kernel can call only __device__ functions: declare it __host__ __device__" },
	{ "calling a constexpr __host__ function(", "",
	  "compile with --expt-relaxed-constexpr, or declare the function __host__ __device__" },
	{ "requires --extended-lambda nvcc flag", "", "compile with nvcc --extended-lambda" },
	{ "The closure type for a lambda", "__global__ function template",
	  "write [=] __device__ (...) { ... } and compile with nvcc --extended-lambda" },
	{ "a __global__ function must have a void return type", "",
	  "a kernel returns nothing: write results through a pointer argument" },
	{ "requires separate compilation mode", "", "compile with nvcc -rdc=true, and link -lcudadevrt" },
	{ "identifier \"__shfl", "is undefined",
	  "since CUDA 13 only the _sync forms exist: __shfl_sync(mask, ...), mask 0xffffffff for all lanes" },
	{ "texture is not a template", "",
	  "texture references are gone since CUDA 12: use cudaTextureObject_t" },
	{ "could not open source file \"", "no directories in search list",
	  "NVRTC has no host headers: drop the #include, use <cuda/std/...>, or give a folder with -I" },
	{ "identifier \"", "is undefined",
	  "the name is not declared for this architecture: check #include and -arch" },
	{ "fatal error: ", "No such file or directory",
	  "%s was not found: check its name, or add its folder with -I" },
	{ "Could not open input file '", "", "nvlink cannot read %s: it must be an object, a library or a cubin" },
	{ "unrecognized input type: ", "", "nvJitLink cannot read %s: it must be a cubin, PTX, LTO code, an object or a library" },
	{ "unsupported GNU version!", "",
	  "this nvcc does not support this g++: name an older one with -ccbin g++-N" },
	{ "Failed to preprocess host compiler properties", "",
	  "nvcc cannot start the host compiler: check -ccbin and NVCC_CCBIN" },
	{ "' is not defined for option 'std'", "", "this nvcc does not support that C++ standard: use -std=c++17 or newer" },
	{ "nvcc fatal   : Unknown option '", "",
	  "nvcc has no option %s: options of the host compiler come after -Xcompiler, of ptxas after -Xptxas" },
	{ "nvrtc: error: unrecognized option ", "",
	  "NVRTC has no option %s: it takes options of device code only" },
	/* host linkers */
	{ "undefined reference to `__cudaRegisterLinkedBinary_", "",
	  "the device code was not linked: run nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too" },
	{ "hidden symbol `", "",
	  "since CUDA 13 a shared library hides the stubs of its kernels: link the archive "
	  "(-l:libNAME.a), or build with nvcc --device-entity-has-hidden-visibility=false" },
	{ "undefined reference to `__cxa_guard_", "",
	  "the host code that nvcc generates is C++: add -lstdc++ at the end of the link command" },
	{ "multiple definition of `", "",
	  "several objects define %s: keep one definition, or declare it static or inline" },
	{ "cannot find -l", "",
	  "no library lib%s.so or .a in the linker's folders: install it, or add its folder with -L" },
	{ "recompile with -fPIC", "", "compile the host code for a shared library: nvcc -Xcompiler -fPIC" },
	{ "skipping incompatible ", "", "that library is for another architecture, such as 32-bit code" },
};

/* What host linkers print before the name of a missing symbol: GNU ld, gold, lld. */
static const char *const missing_symbol[] = {
	"undefined reference to `", "undefined reference to '", "undefined symbol: "
};

/* The library that defines the symbols with a prefix; the first row that fits counts. */
static const struct symbol_owner {
	const char *prefix, *advice;
} owners[] = {
	{ "__cudaRegisterFatBinary",
	  "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "__cuda", "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "cuda", "the CUDA runtime is missing: link -lcudart_static -ldl -lrt -lpthread, or libgpuload-rt.a" },
	{ "curand", "add -lcurand to the link command" },
	{ "cublasLt", "add -lcublasLt to the link command" },
	{ "cublas", "add -lcublas to the link command" },
	{ "cufft", "add -lcufft to the link command" },
	{ "cusparse", "add -lcusparse to the link command" },
	{ "cusolver", "add -lcusolver to the link command" },
	{ "cudnn", "add -lcudnn to the link command" },
	{ "nccl", "add -lnccl to the link command" },
	{ "nvrtc", "add -lnvrtc to the link command" },
	{ "nvJitLink", "add -lnvJitLink to the link command" },
	{ "nvml", "add -lnvidia-ml to the link command" },
	{ "npp", "add the NPP library of the function, such as -lnppc or -lnppial, to the link command" },
	{ "cu", "if this is a call of the CUDA driver, add -lcuda to the link command; without a GPU use "
		"-L.../lib64/stubs" },
	{ "std::", "the code is C++: link with g++ or nvcc, or add -lstdc++ at the end of the link command" },
	{ "__gxx_personality", "the code is C++: link with g++ or nvcc, or add -lstdc++ at the end of the link command" },
	{ "", "no object or library of the link command defines %s: add the one that does, behind the object that "
	      "uses it; for a C function called from C++, declare it extern \"C\"" },
};

/* Demangle the name that begins at `from` and ends at its quote, or else at a blank; owned. */
static char *quoted_name(const char *from)
{
	bool quoted = strchr("'`\"", from[-1]) != NULL;
	char *mangled = strndup(from, strcspn(from, quoted ? "'\"\n" : "', \n:"));
	char *name = mangled ? gpul_demangle(mangled) : NULL;

	if (!name)
		return mangled;
	free(mangled);
	return name;
}

static const char *find_message(const struct known_message *k, const char *text)
{
	const char *at = strstr(text, k->part), *also;

	if (!at || !*k->and_part)
		return at;
	also = strstr(at, k->and_part);
	return also && also < at + strcspn(at, "\n") ? at : NULL;
}

/* The first known message, with the place of the name that it is about; NULL: none. */
static const char *find_known(const char *message, const char **name)
{
	const char *advice = NULL, *at = NULL;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		const char *here = find_message(&known[i], message);

		if (here && (!at || here < at)) {
			advice = known[i].advice;
			at = here;
			*name = here + strlen(known[i].part);
		}
	}
	for (size_t i = 0; i < sizeof missing_symbol / sizeof *missing_symbol; i++) {
		const char *here = strstr(message, missing_symbol[i]);
		const struct symbol_owner *o = owners;

		if (!here || (at && at <= here))
			continue;
		at = here;
		*name = here + strlen(missing_symbol[i]);
		while (strncmp(*name, o->prefix, strlen(o->prefix)))
			o++; /* the last row fits every name */
		advice = o->advice;
	}
	return advice;
}

const char *gpul_advice(const char *message, char buf[GPUL_ADVICE_BYTES])
{
	const char *at, *advice = find_known(message, &at), *hole;
	char *name;

	if (!advice)
		return NULL;
	hole = strstr(advice, "%s");
	name = hole ? quoted_name(at) : NULL;
	snprintf(buf, GPUL_ADVICE_BYTES, "%.*s%.70s%s", (int)(hole ? hole - advice : 0), advice,
		 name ? name : "", hole ? hole + 2 : advice);
	free(name);
	return buf;
}

void gpul_advise(gpul_error *err)
{
	char advice[GPUL_ADVICE_BYTES];
	size_t used = err ? strlen(err->text) : 0;

	if (!err || !gpul_advice(err->text, advice) || strstr(err->text, advice))
		return;
	snprintf(err->text + used, sizeof err->text - used, ": %s", advice);
}
