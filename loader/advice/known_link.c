/* known_link.c — messages of nvlink, nvJitLink and fatbinary, of host linkers, and of the dynamic loader. */
#include "loader/advice/known_internal.h"

#define SAME_DECLARATION \
	"%s is declared differently in two files: declare it once, in a header that both files include, and compile both files again"
#define DIFFERENT_ARCH "a file was compiled for another architecture: compile all files with the same -arch"

/* clang-format off */
static const struct gpul_known_message rows[] = {
	/* messages of nvlink and nvJitLink */
	{ "Undefined reference to '", "", "no linked file defines %s: add the file that does" },
	{ "Multiple definition of '", "",
	  "several linked files define %s: keep one definition, or declare it static or inline" },
	{ "Size doesn't match for '", "", SAME_DECLARATION },
	{ "Memory space doesn't match for '", "",
	  "%s is __constant__ in one file and __device__ or __managed__ in another: declare it the same way in all files, and compile them again" },
	{ "Prototype doesn't match for '", "", SAME_DECLARATION },
	{ "Managed attribute doesn't match for '", "", "%s is __managed__ in one file only: declare it __managed__ in all files, and "
						       "compile them again" },
	{ "' not declared __global__ in all source files", "", "the kernel's declarations differ: declare it __global__ in every file" },
	{ "Duplicate weak parameter bank for '", "", SAME_DECLARATION },
	{ "' has address taken but no calls to it found", "", "not an error: device code takes the address of a function, but no call "
							      "through a pointer matches its type" },
	{ "' arch does not match target '", "", DIFFERENT_ARCH },
	{ "SM Arch ('", "not found in", "the file has no code for this architecture: compile it for the -arch that the link names, or add a -gencode" },
	{ "Output is limited to run on SM Arch", "", "not an error: a file has code for one architecture only, so the linked program "
						     "runs only on that architecture" },
	{ "' size does not match target '", "", "a file was compiled for 32 bits (-m32) and the link is for 64 bits, or the reverse: "
						"compile all files without -m32" },
	{ "abi does not match", "", "the file comes from a different CUDA version, or was compiled with different ABI options: compile "
				    "all files with one CUDA version" },
	{ "ABI version '", "is incompatible with target ABI", "the file comes from another CUDA version: compile all files with one CUDA version" },
	{ "newer than toolkit (", "", "the file was compiled by a newer CUDA version than this linker's: link with the newest CUDA version of all files" },
	{ "must be recompiled with toolkit", "", "the file is too old for this linker: compile it again with this CUDA version" },
	{ "cannot be linked due to version mismatch", "", "compile the file again with this CUDA version" },
	{ "all objects must be compiled with 12.1 or later", "", "kernels with more than 4 KiB of parameters need every object from CUDA 12.1 or newer: compile the older ones again" },
	{ "Skipping incompatible '", "when searching for -l", "the library has no device code for this architecture, or is not for 64 bits" },
	{ "Library file '", "not found in paths", "the device library is not in the folders given with -L: add its folder" },
	{ "Could not find fatbinary in '", "", "%s has no device code: compile it with nvcc -dc (-rdc=true), or leave it out of the device link" },
	{ "' not ET_REL", "", "the file is linked already: give nvlink the objects of nvcc -dc" },
	{ "LTO objects found, use -dlto", "", "some files were compiled with -dlto: link with nvcc -dlto, too" },
	{ "requested LTO but '", "not built for LTO", "not an error: the file was compiled without -dlto, so link-time optimisation "
						      "covers only the other files" },
	{ "-nvvmpath should be specified with -lto", "", "link with nvcc -dlto, which passes the path to nvlink" },
	{ "should only see nvvm files when -lto", "", "link with nvcc -dlto" },
	{ "merge_elf failed", "", "nvlink cannot combine two of the files: the messages before this one say why; if not, compile all "
				  "files again with one CUDA version" },
	{ "elfLink error", "", "the device code of two files does not fit together: compile all of them again with one CUDA version and one -arch" },
	{ "elfLink linker library load error", "", "libnvJitLink was not found: install the library of the CUDA version that the program "
						   "uses" },
	{ "nvlink fatal   : Internal error", "", "an internal error of nvlink: compile all files again with one CUDA version, and report "
						 "the error to NVIDIA" },
	{ "ERROR 4: bad input:", "",
	  "nvJitLink cannot use this file: it may have been compiled for a different architecture from that of -arch" },
	{ "NVJITLINK_ERROR_PTX_COMPILE", "", "the PTX cannot be compiled for this -arch: nvJitLinkGetErrorLog() has the reason" },
	{ "NVJITLINK_ERROR_UNRECOGNIZED_OPTION", "", "nvJitLink does not know an option: nvJitLinkGetErrorLog() names it" },
	{ "NVJITLINK_ERROR_MISSING_ARCH", "", "give nvJitLink the option -arch=sm_N" },
	{ "NVJITLINK_ERROR_INVALID_INPUT", "", "nvJitLink cannot use an input: it must be a cubin, PTX, LTO code, an object or a "
					       "library, and match the type that is passed to the call" },
	{ "NVJITLINK_ERROR_NVVM_COMPILE", "", "the LTO code cannot be compiled: it comes from another CUDA version, or nvJitLinkGetErrorLog() has the reason" },
	{ "NVJITLINK_ERROR_INTERNAL", "", "an internal error of nvJitLink: nvJitLinkGetErrorLog() may have the reason; try another "
					  "version" },
	{ "unrecognized input type: ", "", "nvJitLink cannot read %s: it must be a cubin, PTX, LTO code, an object or a library" },
	{ "fatbinary fatal", "", "fatbinary cannot combine these files: each must be PTX or a cubin of the architecture that its option names" },
	/* messages of host linkers */
	{ "undefined reference to `__cudaRegisterLinkedBinary_", "",
	  "the device code was not linked: run nvcc -dlink OBJECTS -o dlink.o, and link dlink.o too" },
	{ "__cudaRegisterLinkedBinary_", "nresolved", "the device code was not linked: run nvcc -dlink OBJECTS -o dlink.obj, and link dlink.obj too" },
	{ "__fatbinwrap_", "cuda_device_runtime", "the device link used cudadevrt, which the host link lacks: add -lcudadevrt (cudadevrt.lib) to it, or link with nvcc -rdc=true" },
	{ "undefined reference to `__fatbinwrap_", "",
	  "the output of the device link refers to an object or library that this link command lacks: give it all files that nvcc -dlink was given, after it" },
	{ "__fatbinwrap_", "", "the output of the device link refers to an object or library that this link command lacks: give it all files that nvcc -dlink was given" },
	{ "hidden symbol `", "",
	  "since CUDA 13 a shared library hides the stubs of its kernels: link the archive "
	  "(-l:libNAME.a), or build with nvcc --device-entity-has-hidden-visibility=false" },
	{ "undefined reference to `__cxa_guard_", "",
	  "the host code that nvcc generates is C++: add -lstdc++ at the end of the link command" },
	{ "DSO missing from command line", "", "a function comes from that library, which the link command does not name: add the "
					       "library with -l" },
	{ "warning: libcuda.so", "needed by", "at link time, add -L.../lib64/stubs of the CUDA toolkit; at run time, NVIDIA's driver must be installed" },
	{ "warning: libnvidia-", "needed by /",
	  "the libcuda.so that was found belongs to a different driver from the installed one: remove its old files, or link with "
	  "-L.../lib64/stubs of the CUDA toolkit" },
	{ "warning: ", ", not found (try using -rpath", "a library needs %s, which the linker does not find: name its folder with -Wl,-rpath-link,FOLDER" },
	{ "multiple definition of `", "",
	  "several objects define %s: keep one definition, or declare it static or inline" },
	{ "LNK2005", "already defined", "several objects define the symbol: keep one definition, or declare it static or inline" },
	{ "cannot find -lcudart", "", "name the toolkit's libraries with -L, such as -L/usr/local/cuda/lib64, or link with nvcc" },
	{ "cannot find -lcuda:", "", "libcuda belongs to NVIDIA's driver; to link without it, add -L.../lib64/stubs of the CUDA toolkit" },
	{ "cannot find -l", "",
	  "no library lib%s.so or .a in the linker's folders: install it, or add its folder with -L" },
	{ "unable to find library -l", "", "no library lib%s.so or .a in the linker's folders: install it, or add its folder with -L" },
	{ "LNK1181", "cannot open input file", "the linker does not find the library: add the toolkit's folder with /LIBPATH" },
	{ "recompile with -fPIC", "", "compile the host code for a shared library: nvcc -Xcompiler -fPIC" },
	{ "recompile with -fPIE", "", "compile the host code with nvcc -Xcompiler -fPIE, or link with -no-pie" },
	{ "relocation truncated to fit", "", "code and data exceed 2 GiB: compile for fewer architectures, or with -Xcompiler -mcmodel=medium" },
	{ "skipping incompatible ", "", "that library is for another architecture, such as 32-bit code" },
	{ "file not recognized: file format not recognized", "", "the file is not an object for this machine: it may be PTX or a cubin, "
								 "which gpuload run and cuModuleLoad() read, or it may be damaged" },
	/* messages of the dynamic loader */
	{ "libcuda.so.1: cannot open shared object file", "",
	  "NVIDIA's driver is not installed, or the container was started without it (docker run --gpus all); without a GPU: gpuload soft -- PROGRAM" },
	{ "libcuda.so.1: wrong ELF class", "", "the libcuda.so.1 that was found is for 32 bits: install the driver's 64-bit libraries" },
	{ "libnvidia-ml.so.1: cannot open shared object file", "", "NVIDIA's driver is not installed, or the container was started without it (docker run --gpus all)" },
	{ "error while loading shared libraries: libcu", "cannot open shared object file",
	  "a library of the CUDA toolkit was not found: install that version, and add its folder to LD_LIBRARY_PATH, such as /usr/local/cuda/lib64" },
	{ "error while loading shared libraries: libnv", "cannot open shared object file",
	  "a library of the CUDA toolkit was not found: install that version, and add its folder to LD_LIBRARY_PATH, such as /usr/local/cuda/lib64" },
	{ "libnccl.so.2: cannot open shared object file", "", "NCCL was not found: install it (pip install nvidia-nccl-cu13), and add its folder to LD_LIBRARY_PATH" },
	{ "error while loading shared libraries: ", "cannot open shared object file", "the program needs %s: install it, or add its folder to LD_LIBRARY_PATH" },
	{ "ImportError: libcu", "cannot open shared object file", "a library of the CUDA toolkit was not found: install that version, and add its folder to LD_LIBRARY_PATH" },
	{ "OSError: libcu", "cannot open shared object file", "a library of the CUDA toolkit was not found: install that version, and add its folder to LD_LIBRARY_PATH" },
	{ "version `GLIBC_", "not found", "the program was built on a newer system than this one: build the program here, or use a "
					  "container of the newer system" },
	{ "version `GLIBCXX_", "not found", "the program was built by a newer g++ than this system's libstdc++: install a newer libstdc++, or build it here" },
	{ "undefined symbol: __nv", "", "two CUDA versions are mixed: the loaded libraries must have the version that the program was "
					"built for" },
	{ "symbol lookup error: ", "undefined symbol", "a loaded library has a different version from the one that the program was built "
						       "for: check LD_LIBRARY_PATH and ldd" },
};
/* clang-format on */

/* Texts that other programs also print. */
/* clang-format off */
static const struct gpul_known_message nvlink[] = {
	{ "Link target of '", "is virtual target", "link for a real architecture: -arch=sm_N" },
	{ "Cannot target ", "is SASS", "machine code fits only its own architecture: link for that -arch, or compile the file for this one" },
	{ "EF_CUDA_64BIT_ADDRESS", "", "a file was compiled for 32 bits: compile it again without -m32" },
	{ "Ignoring -dlto option", "", "not an error: no file was compiled with -dlto; leave out -dlto, or compile the files with it, "
				       "too" },
	{ "Some objects do not have '", "", "not an error: files were compiled with different options; compile all of them with the same "
					    "options" },
	{ "Cicc option values for '", "do not match", "files were compiled with different options: compile all of them with the same "
						      "options" },
	{ "Library file '", "not recognized", "the library is damaged or for another system: it must be an archive of objects for this machine" },
	{ "SM Arch ('", "mismatch", DIFFERENT_ARCH },
	{ "Unknown arch name", "", "nvlink --help lists the values of -arch" },
	{ "must be >= 20", "", "nvlink --help lists the values of -arch" },
	{ "Unsupported file type", "", "nvlink reads objects, libraries, cubins and fatbins" },
	{ "Could not write file", "", "the file cannot be written: check its path and permissions, and that the disk (TMPDIR) is not "
				      "full" },
	{ "Could not read file", "", "the file cannot be read: check its path and permissions" },
	{ "ould not open ", "", "the file cannot be opened: check its path and permissions, and that the disk (TMPDIR) is not full" },
	{ "annot open file", "", "the file cannot be opened: check its path and permissions, and that the disk (TMPDIR) is not full" },
	{ "Must specify output file", "", "name the output with -o" },
	{ "No input files specified", "", "name the objects to link" },
	{ "Unknown option '", "", "nvlink has no option %s: nvlink --help lists them; options of other tools come after -Xptxas, -Xcompiler, -Xlinker" },
	{ "nvalid argument for option", "", "nvlink --help lists the values of the option" },
	{ "onflicting options", "", "leave one of the two options out" },
	{ "ncompatible options", "", "leave one of the two options out" },
	{ "cuda-api-version", "", "the file comes from a newer CUDA version than the link: link with the newest CUDA version of all files" },
	{ "sanitized object", "", "compile all files again with one CUDA version" },
	{ "partially linked kernel", "", "link the device code of the shared library once: leave the kernel's objects out of this link" },
	{ "larger size than initialization", "", "two files declare the variable with different sizes: declare it once, in a header" },
	{ "conflicting cache preference", "", "not an error: nvlink uses the setting of the kernel" },
	{ "with max regcount of", "", "a kernel calls a function that needs more registers than the kernel has: give the kernel more "
				      "(__launch_bounds__, -maxrregcount), or compile the function with fewer" },
	{ "uses too much global", "", "all __constant__ variables of a program share 64 KiB: move large tables to __device__ memory" },
	{ "uses too much", "", "the kernel needs more memory of this kind than the GPU has: the message states the limit" },
	{ "used in entry function", "", "the kernel uses too many textures, samplers or surfaces: pass texture objects instead of "
					"variables, or use fewer" },
	{ "nternal", "error", "an internal error of nvlink: compile all files again with one CUDA version, and report the error to "
			      "NVIDIA" },
};
/* clang-format on */
#undef SAME_DECLARATION
#undef DIFFERENT_ARCH

const struct gpul_known_table gpul_known_link = { NULL, rows, sizeof rows / sizeof *rows };
const struct gpul_known_table gpul_known_nvlink = { "nvlink", nvlink, sizeof nvlink / sizeof *nvlink };
