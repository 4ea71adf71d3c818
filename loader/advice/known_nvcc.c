/* known_nvcc.c — messages of nvcc and the programs that it starts (cudafe++, cicc, the host compiler), and of NVRTC. */
#include "loader/advice/known_internal.h"

#define NO_TEXTURE_REFERENCES "texture references were removed in CUDA 12: use cudaTextureObject_t"
#define SYNC_FORMS            "since CUDA 13 only the _sync forms exist: __shfl_sync(mask, ...), mask 0xffffffff for all lanes"
#define NEWER_HEADERS \
	"headers of the host compiler or of the C library are newer than this nvcc understands: use a newer CUDA version, or an older g++ with -ccbin g++-N"
#define DEVICE_ONLY_IN_13 "CUDA 13 removed this member of cudaDeviceProp: cudaDeviceGetAttribute() returns the value"
#define ONE_FILE_ONLY     "a kernel must be visible outside of the scope that declares it: move the kernel to namespace scope"
#define LAMBDA_RULE \
	"a kernel that is a template gets the type from the host's code, which must be able to name it: define the type at namespace scope, or as a public member"

/* clang-format off */
static const struct gpul_known_message compilers[] = {
	{ "nvcc: command not found", "", "add the toolkit's bin folder to PATH, such as /usr/local/cuda/bin, or install the CUDA toolkit" },
	{ "nvcc: not found", "", "add the toolkit's bin folder to PATH, such as /usr/local/cuda/bin, or install the CUDA toolkit" },
	{ "' died with status 0x", "", "the compiler crashed: lower the optimisation (-Xptxas -O1), or try another CUDA version or host "
				       "compiler; then report it to NVIDIA" },
	{ "host compiler targets unsupported OS", "", "the compiler that -ccbin names, or the first in PATH, is for another system: name "
						      "a compiler for this host, such as -ccbin g++" },
	{ "' died due to signal 9", "", "the system killed the compiler, usually because memory ran out: run fewer jobs (make -j), "
					"compile for fewer architectures, or split the file" },
	{ "' died due to signal 15", "", "the compiler was stopped from outside, by a user, a time limit or make" },
	{ "' died due to signal 2", "", "the compiler was interrupted (Ctrl-C)" },
	{ "' died due to signal", "", "the compiler crashed: raise the stack (ulimit -s unlimited), lower the optimisation (-Xptxas "
				      "-O1), or try another CUDA version; then report it to NVIDIA" },
	{ "' core dumped", "", "the compiler crashed: raise the stack (ulimit -s unlimited), lower the optimisation (-Xptxas -O1), or "
			       "try another CUDA version; then report it to NVIDIA" },
	{ "Unsupported gpu architecture '", "",
	  "this CUDA version does not compile for %s: nvcc --list-gpu-arch lists what it supports; older "
	  "GPUs need an older CUDA version, newer GPUs a newer one" },
	{ "' is not defined for option 'gpu-architecture'", "",
	  "this CUDA version does not compile for that GPU: nvcc --list-gpu-arch lists what it supports" },
	{ "invalid value for --gpu-architecture", "",
	  "this NVRTC does not compile for that GPU: nvrtcGetSupportedArchs() lists what it supports; older "
	  "GPUs need an older CUDA version" },
	{ "Incompatible code generation requested", "",
	  "code=sm_N needs arch=compute_M with M of at most N" },
	{ "Option '--generate-code", "missing", "write both parts: -gencode arch=compute_90,code=sm_90" },
	{ "is not allowed when compiling for multiple GPU", "", "this option produces a single output: name one architecture, with one "
								"-gencode or -arch" },
	{ "Support for offline compilation for architectures prior to", "",
	  "not an error: a later CUDA version will not compile for this GPU; -Wno-deprecated-gpu-targets hides the warning" },
	{ "are deprecated, and may be removed in a future release", "", "not an error: a later CUDA version will not compile for this GPU; "
									"-Wno-deprecated-gpu-targets hides the warning" },
	{ "Cannot find valid GPU for '-arch=native'", "",
	  "no GPU was found, so nvcc chose its default architecture: name one, such as -arch=sm_90" },
	{ "Value 'c++2", "is not defined for option 'std'", "this nvcc does not support that C++ standard: use -std=c++20 or -std=c++17, or a newer CUDA version" },
	{ "Value '", "is not defined for option 'std'", "this nvcc does not support that C++ standard: use -std=c++17, or another that nvcc --help lists" },
	{ "nvcc fatal   : Unknown option '", "",
	  "nvcc has no option %s: options of the host compiler come after -Xcompiler, of ptxas after -Xptxas" },
	{ "nvrtc: error: unrecognized option ", "",
	  "NVRTC has no option %s: it takes options of device code only" },
	{ "The compiler specified via option --compiler-bindir", "", "-ccbin or NVCC_CCBIN names a compiler that does not exist" },
	{ "Failed to preprocess host compiler properties", "",
	  "nvcc cannot start the host compiler: check -ccbin and NVCC_CCBIN" },
	{ "unsupported GNU version!", "",
	  "this nvcc does not support this g++: name an older one with -ccbin g++-N" },
	{ "unsupported clang version!", "", "this nvcc does not support this clang: name a supported one with -ccbin" },
	{ "The version ('", "of the host compiler", "this nvcc does not support that host compiler: name another with -ccbin" },
	{ "Unsupported host compiler", "", "this nvcc does not support that host compiler: name g++ or clang++ with -ccbin" },
	{ "Compiling in the 32-bit mode", "", "CUDA compiles 64-bit code only: leave out -m32" },
	{ "nvcc does not support '--export-dir", "", "leave out -dir, or -rdc" },
	{ "cannot generate '", "intermediate at compile time", "with -dlto, code is generated only when the program is linked: leave out "
							       "-dlto to keep the intermediate file" },
	/* errors about execution spaces such as __device__ */
	{ "identifier \"", "is undefined in device code",
	  "declare the function or variable __device__ to use it in a kernel" },
	{ "calling a __device__ function(", "from a __host__ __device__ function",
	  "the function also compiles for the host, which cannot call it: put the call into #ifdef __CUDA_ARCH__, or make the caller __device__ only" },
	{ "calling a __device__ function(", "from a __host__ function", "the host cannot call a __device__ function: call it in a kernel, or declare it __host__ __device__" },
	{ "calling a __host__ function", "from a __host__ __device__ function",
	  "the caller also compiles for the GPU, where only __device__ functions exist: declare the called function __host__ __device__, or the caller __host__ only" },
	{ "calling a __host__ function(", "", "a kernel can call only __device__ functions: declare the called function __host__ "
					      "__device__" },
	{ "calling a constexpr __host__ function", "",
	  "compile with --expt-relaxed-constexpr, or declare the function __host__ __device__" },
	{ "The experimental flag '--expt-relaxed-constexpr'", "",
	  "compile with --expt-relaxed-constexpr, or use a __device__ function such as max() or cuda::std::max()" },
	{ "is considered a host function", "JIT mode", "NVRTC compiles device code only: declare the function __device__, or compile "
						       "with -default-device" },
	{ "is considered a host variable", "JIT mode", "NVRTC compiles device code only: declare the variable __device__ or "
						       "__constant__, or compile with -default-device" },
	{ "not allowed in JIT mode", "", "NVRTC compiles device code only: declare the function __device__, or compile with "
					 "-default-device" },
	{ "execution space mismatch", "", "an overriding function must have the execution space (__host__, __device__) of the one that it overrides" },
	{ "function(", "redeclared with", "two declarations of the function have different execution spaces: write __host__, __device__ or __global__ the same way in both" },
	{ "function(", "redeclared without", "two declarations of the function have different execution spaces: write __host__, __device__ or __global__ the same way in both" },
	{ "annotation is ignored on a function(", "", "not an error: a defaulted function gets its execution space from what it calls; leave "
						      "the annotation out" },
	{ "a pointer to a bound function", "", "call the member function, or take its address with &Class::function" },
	{ "a host variable \"", "cannot be directly read in a device function",
	  "a kernel cannot read %s, which is in the host's memory: pass its value as an argument, or declare it __device__, __constant__ or constexpr" },
	{ "a __device__ variable \"", "cannot be directly", "the host cannot use %s, which is in the GPU's memory: copy with cudaMemcpyToSymbol() or cudaMemcpyFromSymbol()" },
	{ "a __constant__ variable \"", "cannot be directly", "the host cannot use %s, which is in the GPU's memory: copy with cudaMemcpyToSymbol() or cudaMemcpyFromSymbol()" },
	{ "a __shared__ variable \"", "cannot be directly", "only kernels can use __shared__ variables" },
	{ "device code does not support exception handling", "", "kernels cannot throw or catch: report an error through memory, or stop with __trap()" },
	{ "exture/surface", "", "texture and surface variables can be used only as arguments of tex1D() and similar functions, not by "
				"address, reference or pointer: use cudaTextureObject_t" },
	{ "texture or surface variable", "", "texture and surface variables can be used only as arguments of tex1D() and similar "
					     "functions, not by address, reference or pointer: use cudaTextureObject_t" },
	{ "address of label extension", "", "kernels have no computed goto: write a switch" },
	{ "thread_local specifier", "device code", "each thread already has its own local variables in a kernel: leave out thread_local" },
	{ "operations on vector types are not supported in device code", "", "compute with the elements .x, .y, .z, .w, or define the operator for float4 and the like" },
	{ "cannot use an entity undefined in device code", "", "the function or variable exists for the host only: declare it __device__" },
	{ "is treated as 'double' in device code", "", "not an error: GPUs have no long double" },
	{ "with ellipsis requires", "", "device functions with a variable number of arguments (...) need a newer architecture: compile "
					"with a newer -arch" },
	{ "\"auto\" deduced return type cannot be directly referenced", "", "write the function's return type in place of auto" },
	{ "member variables of an anonymous union", "", "give the union a name, or declare the variable in the kernel" },
	{ "unrecognized #pragma in device code", "", "not an error: the pragma has no effect in kernels" },
	{ "Name expression ", "", "nvrtcAddNameExpression() takes the name of a kernel, or & and the name of a __device__ or __constant__ variable" },
	{ "device code does not support coroutines", "", "coroutines work in host code only" },
	{ "is not allowed in device code", "", "the operation exists in host code only: kernels have no exceptions, no typeid, no dynamic_cast and no thread_local" },
	{ "is not supported in device code", "", "the feature exists in host code only: move it out of the kernel, or use a form that CUDA C++ has" },
	{ "'long double'", "device code", "GPUs have no long double: it is treated as double" },
	/* errors about kernels */
	{ "requires --extended-lambda nvcc flag", "", "compile with nvcc --extended-lambda" },
	{ "The closure type for a lambda", "function template",
	  "write [=] __device__ (...) { ... } and compile with nvcc --extended-lambda" },
	{ "The closure type for a lambda", "variable template", "give the lambda to a function template, or define the type at namespace scope" },
	{ "extended lambdas cannot be generic", "", "an extended __host__ __device__ lambda must have parameters of fixed types, not "
						    "auto" },
	{ "cannot be defined inside an extended", "", "move the inner lambda out of the extended one, or make it a function" },
	{ "operator() function for a lambda cannot be explicitly annotated", "", "write [=] __device__ (...) { ... } before the parameters, and compile with nvcc --extended-lambda" },
	{ "*this capture is only supported", "", "compile with -std=c++17 or newer, or copy *this into a local variable and capture that" },
	{ "An unnamed type (", "template", "give the type a name at namespace scope" },
	{ "A type local to a function", "", LAMBDA_RULE },
	{ "A type defined inside a __host__ function", "", LAMBDA_RULE },
	{ "private or protected", "template", LAMBDA_RULE },
	{ "private or protected class member", "", LAMBDA_RULE },
	{ "extended __host__ __device__ lambda", "private or protected access", "a function that defines an extended lambda must be public in its class" },
	{ "extended __device__ lambda", "private or protected access", "a function that defines an extended lambda must be public in its class" },
	{ "enclosing parent function", "extended", "the function that contains an extended lambda must have a name and an address, and be public in its class: move the lambda" },
	{ "Implicit capture of 'this'", "", "the lambda uses the host's pointer this: capture *this, or copy the members that it needs into local variables" },
	{ "init-captures are not allowed for extended", "", "copy the value into a local variable before the lambda, and capture that" },
	{ "a __global__ function must have a void return type", "",
	  "a kernel returns nothing: write results through a pointer argument" },
	{ "A __global__ function or function template cannot be a member function", "", "make the kernel a free function; it can take the object as a parameter" },
	{ "A __global__ function or function template cannot be marked const", "", "kernels run on the GPU only: leave out constexpr or consteval" },
	{ "A __global__ function or function template cannot have a parameter", "", "kernels receive copies of plain values, not "
										    "references: pass a struct or a pointer to GPU "
										    "memory" },
	{ "a __global__ function or function template cannot have a parameter", "", "kernels receive copies of plain values, not "
										    "references: pass a struct or a pointer to GPU "
										    "memory" },
	{ "A __global__ function or function template cannot", "", ONE_FILE_ONLY },
	{ "An operator function cannot be a __global__ function", "", "give the kernel a name of its own; the kernel can call the "
								      "operator" },
	{ "a __global__ function must not have a deduced return type", "", "write void: a kernel returns nothing" },
	{ "An exception specification is not allowed for a __global__", "", "leave out noexcept: kernels have no exceptions" },
	{ "for a variadic __global__ function template", "", "a kernel template can have only one parameter pack, which must be the last "
							     "parameter" },
	{ "to a device-side kernel launch", "", "a kernel that launches a kernel can pass only plain values: types without a destructor "
						"and without a user-defined copy constructor" },
	{ "exceeds __launch_bounds__ specified limit", "", "__cluster_dims__ has more blocks than the third argument of "
							   "__launch_bounds__ allows: change one of the two" },
	{ "no __launch_bounds__ specified", "", "not an error: with __launch_bounds__(THREADS) the compiler can use more registers" },
	{ "a __global__ function cannot have a parameter with", "reference", "kernels receive copies of their arguments: pass a pointer "
									     "to GPU memory, or a value" },
	{ "a __global__ function cannot have ellipsis", "", "kernels must have a fixed number of parameters" },
	{ "function main cannot be marked", "", "main() runs on the host: leave out __device__ and __global__" },
	{ "a __global__ function call must be configured", "", "launch the kernel with its configuration: kernel<<<blocks, threads>>>(arguments)" },
	{ "a host function call cannot be configured", "", "only __global__ functions are launched with <<<blocks, threads>>>" },
	{ "too few arguments in function call", "", "the call passes fewer arguments than the declaration has; CUDA 13 added a parameter "
						    "to some calls (graphs, cudaMemAdvise)" },
	{ "is only allowed on a __global__ function", "", "the attribute belongs to kernels: declare the function __global__, or leave it out" },
	{ "cannot be applied to the same kernel", "", "keep one of the two attributes" },
	{ "requires separate compilation mode", "", "compile with nvcc -rdc=true, and link -lcudadevrt" },
	{ "device-side kernel launch could not be processed", "", "compile with nvcc -rdc=true, link -lcudadevrt, and include cuda_runtime.h" },
	{ "explicit stream argument not provided in kernel launch", "", "give the stream as the fourth value of <<<blocks, threads, bytes, stream>>>" },
	{ "-static-global-template-stub=true", "", "the kernel template is defined in another file: compile with -rdc=true, or with -static-global-template-stub=false" },
	{ "inline __device__", "must have internal linkage", "declare the variable static, or compile with -rdc=true" },
	/* errors about variables */
	{ "__shared__ variables cannot have external linkage", "", "extern __shared__ arrays have no size: extern __shared__ float buffer[]; other shared variables are declared in the kernel" },
	{ "dynamic initialization is not supported for", "", "variables in GPU memory can be initialised only with constants: assign the "
							     "value in a kernel, or make the constructor constexpr" },
	{ "an initializer is not allowed", "__shared__", "__shared__ variables have no initial value: let one thread store it, then __syncthreads()" },
	{ "initializer not allowed for __shared__", "", "__shared__ variables have no initial value: let one thread store it, then __syncthreads()" },
	{ "function-scope static variable within a __device__", "", "write static __device__ or static __shared__" },
	{ "memory space specifier", "", "__device__, __constant__, __shared__ and __managed__ apply to variables, and each variable can "
					"have only one of them; members and parameters cannot have any" },
	{ "__managed__ variable", "", "a __managed__ variable cannot be const, a reference, __shared__ or __constant__" },
	{ "__grid_constant__", "", "a __grid_constant__ parameter must belong to a kernel, have a const type that is not a reference, "
				   "and be the same in every declaration" },
	{ "asm operand", "constraint letter", "use one letter that fits the size: h 16, r 32, l 64, q 128 bits, f float, d double, n constant" },
	{ "asm constraint letter", "not allowed", "inline PTX has the constraints h 16, r 32, l 64, q 128 bits, f float, d double, n and C constants" },
	{ "an asm operand must have", "", "inline PTX takes scalars of 16, 32, 64 or 128 bits: convert the value first" },
	/* errors in headers of the host; these rows come before those about names of CUDA */
	{ "/include/c++/", "\" is undefined", NEWER_HEADERS },
	{ "/lib/gcc/", "\" is undefined", NEWER_HEADERS },
	{ "linux-gnu/bits/", "\" is undefined", NEWER_HEADERS },
	/* errors about names that CUDA removed or renamed */
	{ "identifier \"__shfl", "is undefined", SYNC_FORMS },
	{ "identifier \"__ballot", "is undefined", "since CUDA 13 only __ballot_sync(mask, predicate) exists, mask 0xffffffff for all lanes" },
	{ "identifier \"__any\"", "is undefined", "since CUDA 13 only __any_sync(mask, predicate) exists, mask 0xffffffff for all lanes" },
	{ "identifier \"__all\"", "is undefined", "since CUDA 13 only __all_sync(mask, predicate) exists, mask 0xffffffff for all lanes" },
	{ "texture is not a template", "", NO_TEXTURE_REFERENCES },
	{ "identifier \"texture\"", "is undefined", NO_TEXTURE_REFERENCES },
	{ "identifier \"textureReference", "is undefined", NO_TEXTURE_REFERENCES },
	{ "identifier \"surfaceReference", "is undefined", "surface references were removed in CUDA 12: use cudaSurfaceObject_t" },
	{ "identifier \"cudaBindTexture", "is undefined", NO_TEXTURE_REFERENCES " and cudaCreateTextureObject()" },
	{ "identifier \"cudaUnbindTexture", "is undefined", NO_TEXTURE_REFERENCES " and cudaDestroyTextureObject()" },
	{ "identifier \"cudaGetTexture", "is undefined", NO_TEXTURE_REFERENCES },
	{ "identifier \"cudaBindSurface", "is undefined", "surface references were removed in CUDA 12: use cudaSurfaceObject_t and "
							  "cudaCreateSurfaceObject()" },
	{ "identifier \"cudaThreadSynchronize\"", "is undefined", "CUDA 13 removed cudaThreadSynchronize(): call cudaDeviceSynchronize()" },
	{ "identifier \"cudaThreadExit\"", "is undefined", "CUDA 13 removed cudaThreadExit(): call cudaDeviceReset()" },
	{ "identifier \"cudaThread", "is undefined", "CUDA 13 removed the cudaThread calls: cudaDeviceSetLimit(), "
						     "cudaDeviceSetCacheConfig() and similar calls replace them" },
	{ "\"cudaDeviceProp\" has no member \"", "", "CUDA 13 removed %s from cudaDeviceProp: cudaDeviceGetAttribute() returns the value" },
	{ "has no member named '", "cudaDeviceProp", DEVICE_ONLY_IN_13 },
	{ "struct cudaDeviceProp", "has no member named", DEVICE_ONLY_IN_13 },
	{ "\"cudaPointerAttributes\" has no member", "", "CUDA 11 renamed memoryType to type and removed isManaged" },
	{ "argument of type \"int\" is incompatible with parameter of type \"cudaMemLocation\"", "", "since CUDA 13 the call takes a location: cudaMemLocation{cudaMemLocationTypeDevice, device}" },
	{ "to \"cudaMemLocation\" exists", "", "since CUDA 13 the call takes a location: cudaMemLocation{cudaMemLocationTypeDevice, device}" },
	{ "no instance of overloaded function \"tex", "", NO_TEXTURE_REFERENCES },
	{ "no instance of overloaded function \"surf", "", "surface references were removed in CUDA 12: use cudaSurfaceObject_t" },
	{ "no instance of overloaded function \"atomicAdd\"", "", "atomicAdd does not support this type on this architecture: double "
								  "needs -arch=sm_60 or newer, __half sm_70, vectors of float sm_90; and "
								  "the address must point to that type" },
	{ "no instance of overloaded function \"atomic", "", "the atomic function does not support these types: the CUDA C++ programming "
							     "guide lists the types that the address and the values may have" },
	{ "no instance of overloaded function \"", "", "no function %s takes arguments of these types: compare the types that the message lists with its declaration" },
	{ "namespace \"thrust\" has no member \"", "", "the Thrust of this CUDA version has no %s: include its header; Thrust in CUDA 13 "
						       "no longer has what C++17 provides, such as thrust::unary_function" },
	{ "namespace \"cub\" has no member \"", "", "the CUB of this CUDA version has no %s: include its header, or use what its documentation names in its place" },
	/* errors in headers */
	{ "exception specification is incompatible with that of previous function \"", "",
	  "glibc 2.41 and newer declares %s, too: use CUDA 13.0 or newer, or an older glibc" },
	{ "identifier \"_Float", "is undefined", NEWER_HEADERS },
	{ "identifier \"__bf16\"", "is undefined", NEWER_HEADERS },
	{ "identifier \"__float128\"", "is undefined", "device code and this nvcc do not support __float128: hide it with #ifndef "
						       "__CUDACC__, or use a newer CUDA version" },
	{ "identifier \"__builtin_", "is undefined", NEWER_HEADERS },
	{ "identifier \"__is_", "is undefined", NEWER_HEADERS },
	{ "parameter packs not expanded with", "", NEWER_HEADERS },
	{ "could not open source file \"", "no directories in search list",
	  "NVRTC has no host headers: drop the #include, use <cuda/std/...>, or give a folder with -I" },
	{ "cannot open source file \"", "", "%s was not found: check its name, or add its folder with -I; NVRTC has no host headers" },
	{ "could not open source file \"", "", "%s was not found: check its name, or add its folder with -I" },
	{ "fatal error: cuda", ".h: No such file or directory", "a header of CUDA was not found: add the toolkit's include folder with -I, such as -I/usr/local/cuda/include" },
	{ "fatal error: ", "No such file or directory",
	  "%s was not found: check its name, or add its folder with -I" },
	{ "nvlink fatal   : Could not open input file '", "", "nvlink cannot read %s: it must be an object, a library or a cubin" },
	{ "Could not open input file '", "", "%s was not found or cannot be read: check its name" },
	{ "identifier \"", "is undefined",
	  "%s is not declared here: check its spelling and its #include, and that #if or the architecture (-arch) does not leave it out" },
	{ "expression must have a constant value", "", "the size of an array or a template argument must be a constant: constexpr, not a variable; for shared memory, extern __shared__" },
	/* error codes of NVRTC */
	{ "NVRTC_ERROR_COMPILATION", "", "the program has errors: nvrtcGetProgramLog() returns them" },
	{ "NVRTC_ERROR_INVALID_OPTION", "", "NVRTC does not know an option: nvrtcGetProgramLog() names it; it takes options of device code only" },
	{ "NVRTC_ERROR_INVALID_INPUT", "", "an argument of the NVRTC call is wrong, such as a NULL source or an empty name" },
	{ "NVRTC_ERROR_INVALID_PROGRAM", "", "the program was destroyed or never created" },
	{ "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE", "", "libnvrtc-builtins.so is missing, or has a different version: install it beside "
						       "libnvrtc.so" },
	{ "failed to open libnvrtc-builtins", "", "install libnvrtc-builtins.so of the same version beside libnvrtc.so, or add its folder to LD_LIBRARY_PATH" },
	{ "NVRTC_ERROR_OUT_OF_MEMORY", "", "the host has no memory left for the compiler" },
	{ "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION", "", "call nvrtcAddNameExpression() before nvrtcCompileProgram()" },
	{ "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION", "", "call nvrtcGetLoweredName() after nvrtcCompileProgram()" },
	{ "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID", "", "the name was not added with nvrtcAddNameExpression(), or no kernel or variable of the program has it" },
	{ "NVRTC_ERROR_INTERNAL_ERROR", "", "an internal error of NVRTC: try another version" },
	{ "Internal Compiler Error", "", "an internal error of the compiler: try another optimisation level or CUDA version, and report "
					 "the error to NVIDIA" },
	{ "internal error: assertion failed", "", "an internal error of the compiler: try another optimisation level or CUDA version, "
						  "and report the error to NVIDIA" },
};
/* clang-format on */

/* Errors of nvcc whose texts other programs print, too: they count only in a line of nvcc. */
/* clang-format off */
static const struct gpul_known_message nvcc[] = {
	{ "must be a virtual code architecture", "", "with -code, -arch names a virtual architecture: -arch=compute_90 -code=sm_90, or -arch=sm_90 alone" },
	{ "Value '", "is not defined for option '", "the option does not take %s: nvcc --help lists its values" },
	{ "Unknown option '", "", "there is no option %s: --help lists the options; nvcc passes others on after -Xcompiler, -Xptxas, -Xlinker or -Xnvlink" },
	{ "requires use of option '", "", "add the second option, or leave out the first" },
	{ "no argument expected after '", "", "option %s takes no value" },
	{ "argument expected after '", "", "option %s needs a value" },
	{ "redefinition of argument '", "", "option %s is given twice with different values: keep one" },
	{ "A single input file is required for a non-link phase when an outputfile is specified", "",
	  "-c with -o accepts one source file: compile each file by itself, or leave out -o" },
	{ "No input files specified", "", "name a source file" },
	{ "Don't know what to do with '", "", "nvcc does not know the kind of %s: give it a known suffix (.cu, .cpp, .o, .a), or name the language with -x cu" },
	{ "Cannot find compiler '", "", "the host compiler %s is not in PATH: install it, or name another with -ccbin" },
	{ "32-bit mode", "", "CUDA compiles 64-bit code only: leave out -m32" },
	{ "'-MD'/'-MMD' is not supported", "", "make the dependency file in a command of its own: nvcc -M FILE.cu -MF FILE.d" },
	{ "has been deprecated", "", "not an error yet: a later version will remove this; use the replacement that the message names" },
	{ "is a deprecated value", "", "not an error yet: a later version will remove this; use the replacement that the message names" },
	{ "observer", "", "not an error: nvcc compiles without make's job server; put + before the nvcc command in the Makefile, or "
			  "leave out --jobserver" },
	{ "is no longer supported as a host compiler", "", "name g++ or clang++ with -ccbin" },
	{ "Unsupported target found", "", "the host compiler makes code for a machine that CUDA does not support: name another with -ccbin" },
	{ "Unrecognized version of Apple clang", "", "not an error: nvcc treats the host compiler as clang" },
	{ "host compiler properties", "", "nvcc cannot start the host compiler or write to its temporary folder: check -ccbin, NVCC_CCBIN and TMPDIR" },
	{ "flag is not supported with the configured host compiler", "", "not an error: the flag has no effect with this host compiler; "
									 "leave it out" },
	{ "Visual Studio", "", "install a Visual Studio that this CUDA version supports with its C++ tools, or name its cl.exe folder with -ccbin" },
	{ "cl.exe", "", "two Visual C++ compilers are found: start from one developer prompt, or leave out -ccbin" },
	{ "libcudart_static.a not found", "", "the toolkit is not complete: install its runtime (cuda-cudart-dev), or link with -cudart shared" },
	{ "libdevice", "", "the toolkit is not complete, or nvcc.profile was changed: install nvvm/libdevice, or leave out --dont-use-profile" },
	{ "race file", "", "the trace cannot be written: check its path" },
	{ "Failed to create the host compiler response file", "", "the temporary folder (TMPDIR) is full or read-only" },
	{ "ould not open", "", "the file cannot be opened: check its path and permissions, and that the disk (TMPDIR) is not full" },
	{ "annot open file", "", "the file cannot be opened: check its path and permissions, and that the disk (TMPDIR) is not full" },
	{ "-use-cubin", "", "nvcc --help describes --use-cubin: each code=sm_N needs its own cubin=FILE, and must also be given to "
			    "-gencode" },
	{ "when compiling for a virtual compute architecture", "", "the option needs a real (not a virtual) architecture: code=sm_N" },
	{ "input files are only allowed with", "", "this kind of file needs the option that the message names: add it, or leave the file "
						   "out" },
	{ "recognizes device-only", "", "the file contains device code only: add -dlink, or leave the file out" },
	{ "cannot produce the .", "", "objects compiled without -rdc=true have nothing to link on the device: compile them with -dc" },
	{ "is not compatible with", "", "leave one of the two options out" },
	{ "conflicts with", "", "leave one of the two options out" },
	{ "cannot be combined with", "", "leave one of the two options out" },
	{ "cannot both be specified", "", "leave one of the two options out" },
	{ "Cannot use '", "' with '", "leave one of the two options out" },
	{ "Argument for ", "must be", "the option's value is not one of those that the message names" },
	{ "value for '", "must be", "the option's value is not one of those that the message names" },
	{ "ption '", "' ignored", "not an error: the option has no effect here; leave it out" },
	{ "ignoring option", "", "not an error: the option has no effect here; leave it out" },
	{ "overrides '--", "", "not an error: the second option has no effect here; leave it out" },
	{ "no such file or directory", "", "the file does not exist: check its name and the current folder" },
	{ "unless '-rdc=true'", "", "add -rdc=true" },
	{ "bit mode when the host compiler targets", "", "leave out -m32 and -m64: CUDA compiles for the host compiler's own machine" },
	{ "cross compilation is not supported", "", "leave out -m32 and -m64: CUDA compiles for the host compiler's own machine" },
	{ "requires one of '", "", "add one of the options that the message names" },
	{ "is only allowed in", "", "the option needs another option, which the message names" },
	{ "More than one compilation phase specified", "", "keep one of -c, -E, -ptx, -cubin, -fatbin or similar options" },
	{ "Could not determine number of CPUs", "", "give the number of threads: -t 4" },
	{ "fork() failed", "", "the system cannot start more processes: run fewer jobs, and check memory and ulimit -u" },
	{ "exec() failed", "", "nvcc cannot start a tool: check the installation of the toolkit, -ccbin and the permissions of the files" },
};
/* clang-format on */
#undef NO_TEXTURE_REFERENCES
#undef SYNC_FORMS
#undef NEWER_HEADERS
#undef DEVICE_ONLY_IN_13
#undef ONE_FILE_ONLY
#undef LAMBDA_RULE

const struct gpul_known_table gpul_known_compilers = { NULL, compilers, sizeof compilers / sizeof *compilers };
const struct gpul_known_table gpul_known_nvcc = { "nvcc", nvcc, sizeof nvcc / sizeof *nvcc };
