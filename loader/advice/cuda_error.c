/* cuda_error.c — gives advice on the errors of the CUDA driver and runtime, which programs print by name or by text. */
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/cuda_errors.h"
#include "loader/advice/known_internal.h"

#define IN_A_KERNEL \
	"; an earlier launch caused the error: find it with gpuload soft -- PROGRAM, compute-sanitizer or CUDA_LAUNCH_BLOCKING=1"
#define PROFILER \
	"another profiler controls the program, or no profiler is running: cudaProfilerStart() and cudaProfilerStop() work only under " \
	"nsys or ncu"
#define OLD \
	"current CUDA versions no longer return this error: the program was built with a very old header, or the number is not a CUDA error"
#define OLD_TEXTURE "the texture or surface was not created, or was already destroyed: check cudaCreateTextureObject() and its descriptors"
#define GRAPHICS \
	"map the graphics resource with cudaGraphicsMapResources() before its use, and unmap it afterwards, in the thread that has the " \
	"graphics context"
#define NESTED \
	"launches from kernels exceed a limit: raise it with cudaDeviceSetLimit(), or launch fewer; CUDA 12 removed synchronisation inside of kernels"
#define CAPTURE \
	"the call is not possible while a stream is captured: do it before cudaStreamBeginCapture(), or capture with cudaStreamCaptureModeRelaxed"
#define CAPTURE_ORDER \
	"a captured stream depends on work outside of the capture, or its work was not joined: fork and join streams with events inside of the capture"
#define MPS      "see the log of nvidia-cuda-mps-server and nvidia-cuda-mps-control; end MPS clients that hang, or run without MPS"
#define HARDWARE "a fault of the GPU or its link: see dmesg (Xid) and nvidia-smi -q; reset the GPU or have it replaced if it happens again"

static const struct {
	int number;
	const char *advice;
} advices[] = {
	{ 1,
	  "an argument is wrong: a size, a pointer that is not, or no longer, a pointer to GPU memory, a launch with 0 or too many threads, or a wrong copy direction" },
	{ 2, "the GPU has no memory left for the request: free memory or use less; nvidia-smi lists the processes that use it" },
	{ 3, "CUDA is not initialised: cuInit(0) comes first; after fork() a child must not use its parent's CUDA" },
	{ 4, "the program is ending: destructors of static objects must not call CUDA" },
	{ 5, PROFILER },
	{ 6, PROFILER },
	{ 7, PROFILER },
	{ 8, PROFILER },
	{ 9,
	  "the launch has 0 or too many threads or blocks, or too much shared memory: at most 1,024 threads in a block, 65,535 blocks in y and z" },
	{ 12, "the pitch must be at least the width in bytes and at most the device's maximum pitch" },
	{ 13,
	  "the symbol is not a __device__ or __constant__ variable of this program: pass the variable itself, not its name or address" },
	{ 16, OLD },
	{ 17, OLD },
	{ 22, OLD },
	{ 23, OLD },
	{ 24, OLD },
	{ 25, OLD },
	{ 28, OLD },
	{ 31, OLD },
	{ 32, OLD },
	{ 53, OLD },
	{ 18, OLD_TEXTURE },
	{ 19, OLD_TEXTURE },
	{ 37, OLD_TEXTURE },
	{ 20, "make the channel description with cudaCreateChannelDesc<T>(); a type has 1, 2 or 4 channels of 8, 16 or 32 bits" },
	{ 21, "the direction of the copy must be one of cudaMemcpyHostToDevice, DeviceToHost, DeviceToDevice, HostToHost and Default" },
	{ 26, "linear filtering needs float, or integers with cudaReadModeNormalizedFloat" },
	{ 27, "cudaReadModeNormalizedFloat needs integers of 8 or 16 bits" },
	{ 34, "the stub of libcuda (lib64/stubs) was loaded: it is for linking only; remove its folder from LD_LIBRARY_PATH, so that the "
	      "driver's own library is found" },
	{ 35,
	  "the driver is older than the CUDA version of the program: update the driver, or build with an older CUDA version; nvidia-smi "
	  "shows the newest version that the driver supports" },
	{ 36, "the driver is too old for this call: update the driver" },
	{ 43, "two variables in the linked files have this name: rename one of them" },
	{ 44, OLD_TEXTURE },
	{ 45, OLD_TEXTURE },
	{ 46, "the GPU is used exclusively by another process, or does not work: see nvidia-smi (compute mode) and dmesg" },
	{ 49,
	  "the current context was made by the driver API in a way the runtime cannot use: use the primary context, cuDevicePrimaryCtxRetain()" },
	{ 52, "launch kernels with <<<blocks, threads>>>" },
	{ 65, NESTED },
	{ 66, OLD_TEXTURE },
	{ 67, OLD_TEXTURE },
	{ 68, NESTED },
	{ 69, NESTED },
	{ 98,
	  "the program has no code of this kernel for this GPU: compile with -arch of the GPU; or the pointer is not a __global__ function" },
	{ 100,
	  "no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES; in a container start with --gpus all; without a GPU: gpuload soft -- PROGRAM" },
	{ 101, "there is no device with this number: cudaGetDeviceCount() returns the number of devices, and CUDA_VISIBLE_DEVICES can hide "
	       "devices" },
	{ 102, "the virtual GPU has no licence: see nvidia-smi -q and the licence server" },
	{ 103, "the driver's files are damaged: install the driver again" },
	{ 127, "the CUDA runtime could not start: its libraries are damaged, or have different versions" },
	{ 200, "the image is damaged, is not PTX, a cubin or a fatbin, or is for another GPU: gpuload ls shows what it contains" },
	{ 201, "no context is current, or it was destroyed: create one and make it current in this thread with cuCtxSetCurrent()" },
	{ 202, OLD },
	{ 205, GRAPHICS },
	{ 206, GRAPHICS },
	{ 207, GRAPHICS },
	{ 208, GRAPHICS },
	{ 210, GRAPHICS },
	{ 211, GRAPHICS },
	{ 212, GRAPHICS },
	{ 213, GRAPHICS },
	{ 219, GRAPHICS },
	{ 209,
	  "the program has no code for this GPU: compile with -arch of the GPU (nvidia-smi --query-gpu=compute_cap --format=csv), or keep PTX in it" },
	{ 214, HARDWARE },
	{ 220, HARDWARE },
	{ 226, HARDWARE },
	{ 215, "this GPU does not support this limit: cudaDeviceSetLimit() cannot set it" },
	{ 216, "another thread or process uses the GPU exclusively: see nvidia-smi (compute mode)" },
	{ 217, "these GPUs cannot access each other's memory: call cudaDeviceCanAccessPeer() first, and copy through the host otherwise" },
	{ 218, "the driver cannot compile the PTX: its JIT log (CU_JIT_ERROR_LOG_BUFFER) or gpuload check FILE names the line" },
	{ 221, "libnvidia-ptxjitcompiler.so is missing: it belongs to the driver; install it, or ship code for this GPU (cubin)" },
	{ 222,
	  "the PTX is newer than the driver: update the driver, compile with its CUDA version or older, or compile for this GPU (-arch=sm_N, which needs no JIT)" },
	{ 223, "CUDA_DISABLE_PTX_JIT is set: unset it, or compile for this GPU" },
	{ 224, "this GPU cannot be divided between contexts: do not request an execution affinity" },
	{ 225, "kernels cannot call cudaDeviceSynchronize() on this GPU: CUDA 12 removed it; use tail launches (cudaStreamTailLaunch)" },
	{ 300, "the source or image is not valid: gpuload ls FILE shows what it contains" },
	{ 301, "the file does not exist or cannot be read: the path is relative to the current folder" },
	{ 302, "a shared library lacks a function: the driver's libraries have different versions; install the driver again" },
	{ 303, "a library of the driver could not be loaded: install the driver again, or check LD_LIBRARY_PATH" },
	{ 304,
	  "the operating system refused the call: check limits (ulimit -l, open files), permissions of /dev/nvidia*, and the container" },
	{ 400, "the stream, event, module or graph was destroyed, never created, or belongs to another device or context" },
	{ 401, "the object is not in a state that allows the call: see the call's documentation" },
	{ 402, "the query would lose information: use the newer form of the call, such as with edge data" },
	{ 500, "no kernel or variable in the module has this name: C++ names are mangled; declare the kernel extern \"C\", or look with "
	       "gpuload ls" },
	{ 600, "not an error: the work is not finished yet; query again, or synchronise" },
	{ 700,
	  "a kernel or copy accessed memory that is not allocated, such as past the end of an array, or by a host pointer" IN_A_KERNEL },
	{ 701, "a block needs more registers or shared memory than the GPU has: use fewer threads in a block, or __launch_bounds__" },
	{ 702, "the kernel ran longer than the display's watchdog allows: split it, or use a GPU without a display" },
	{ 703, OLD },
	{ 704, "peer access is already enabled: this error can be ignored" },
	{ 705, "enable peer access first, with cudaDeviceEnablePeerAccess()" },
	{ 708, "this must be set before the first use of the device in the process" },
	{ 709, "the context was destroyed, or failed, and can no longer be used" },
	{ 710, "an assert() in a kernel failed: its file, line and condition are printed above this error" IN_A_KERNEL },
	{ 711, "a GPU can have peer access to a limited number of other GPUs at the same time: disable peer access to some" },
	{ 712, "the memory is already registered: register it only once, or unregister it first" },
	{ 713, "the pointer is not the start of memory that cudaHostRegister() registered" },
	{ 714, "a kernel's stack overflowed or was overwritten: raise cudaLimitStackSize, check recursion and local arrays" IN_A_KERNEL },
	{ 715, "the code of a kernel is damaged or not for this GPU, or the kernel jumped through a bad pointer" IN_A_KERNEL },
	{ 716, "an access is not aligned to its size, such as float4 at an address that is not a multiple of 16" IN_A_KERNEL },
	{ 717, "an instruction for global or shared memory was given an address in another state space" IN_A_KERNEL },
	{ 718, "a kernel jumped through a bad function pointer; host function pointers do not work in kernels" IN_A_KERNEL },
	{ 719, "a kernel failed, often because of a bad address or a trap" IN_A_KERNEL },
	{ 720, "all blocks of a cooperative launch must be resident at the same time: launch at most as many as fit on one multiprocessor "
	       "(occupancy), times the number of multiprocessors" },
	{ 721, "a kernel ended without tcgen05.dealloc of its tensor memory" },
	{ 800, "the call is not allowed here: stream callbacks must not call CUDA; otherwise, the process lacks a permission (containers, "
	       "MIG, profiling)" },
	{ 801, "this GPU, driver or operating system does not have the feature: query the device attribute of the feature first" },
	{ 802, "on machines with NVSwitch, nvidia-fabricmanager must be running, in the same version as the driver: systemctl status "
	       "nvidia-fabricmanager, and dmesg" },
	{ 803,
	  "libcuda.so and the kernel module have different versions: reboot after the driver's update, or fix the container's libraries" },
	{ 804, "a forward-compatible libcuda (cuda-compat) is loaded, which this GPU does not support: remove its folder from "
	       "LD_LIBRARY_PATH, or update the driver" },
	{ 805, MPS },
	{ 806, MPS },
	{ 807, MPS },
	{ 808, MPS },
	{ 809, MPS },
	{ 810, MPS },
	{ 811, "kernels cannot launch kernels in this configuration, such as under MPS" },
	{ 812, "device code of different CUDA versions launches kernels: compile all files with one version" },
	{ 900, CAPTURE },
	{ 901, "an earlier call broke the capture: look for the first error between begin and end of the capture" },
	{ 902, CAPTURE_ORDER },
	{ 903, "end the capture in the stream in which it began" },
	{ 904, CAPTURE_ORDER },
	{ 905, CAPTURE_ORDER },
	{ 906,
	  "work in the default stream would wait for a capture: create streams with cudaStreamNonBlocking, or do not use the default stream during the capture" },
	{ 907, "the event was recorded in a stream capture, so only work of the same capture can wait for it" },
	{ 908, "end the capture in the thread that began it, or capture with cudaStreamCaptureModeRelaxed" },
	{ 909, "a wait took longer than its limit: what it waits for has ended or hangs" },
	{ 910, "the new graph has a different structure: instantiate it again with cudaGraphInstantiate()" },
	{ 911, "a device that CUDA does not control failed: see dmesg" },
	{ 912,
	  "the cluster does not fit: at most 8 blocks (16 with cudaFuncAttributeNonPortableClusterSizeAllowed), which divide the grid" },
	{ 913, "load the function first: cuFuncLoad(), or CUDA_MODULE_LOADING=EAGER" },
	{ 914, "the resource is of the wrong kind for the call" },
	{ 915, "the resource is too small or not suitable for the call" },
	{ 916, "the GPU's encryption keys were changed during the operation: repeat the operation" },
	{ 999,
	  "the driver met a state that it does not know: see dmesg and nvidia-smi; after suspend, reload the module nvidia_uvm or reboot" },
};

static const struct {
	int number;
	const char *names[2], *text; /* names of the error in the driver API and the runtime API; NULL: not in this API */
} errors[] = {
#define ROW(number, driver_name, runtime_name, text) { number, { driver_name, runtime_name }, text },
	GPUL_CUDA_ERRORS(ROW)
#undef ROW
};

/* True if the line contains the word, but not as a part of a longer name. */
static bool has_word(const char *line, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = line; (at = strstr(at, word)); at++)
		if ((at == line || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) && !isalnum((unsigned char)at[n]) && at[n] != '_')
			return true;
	return false;
}

/* Other programs also print "out of memory" and "invalid argument", so the line must show that it is about CUDA. */
static bool is_about_cuda(const char *line)
{
	for (; *line; line++)
		if (!strncasecmp(line, "cuda", 4) || !strncmp(line, "GPU", 3) ||
		    (!strncmp(line, "cu", 2) && isupper((unsigned char)line[2])))
			return true;
	return false;
}

static const char *advice_on(int number)
{
	for (size_t i = 0; i < sizeof advices / sizeof *advices; i++)
		if (advices[i].number == number)
			return advices[i].advice;
	return NULL;
}

/* Find the error whose text is the whole line, as printf("%s\n", cudaGetErrorString(e)) prints it.  Returns n if there is none. */
static size_t find_whole_line(const char *line)
{
	const size_t n = sizeof errors / sizeof *errors;
	size_t bytes;

	line += strspn(line, " \t");
	bytes = strcspn(line, "\r\n");
	for (size_t i = 1; i < n; i++)
		if (strlen(errors[i].text) == bytes && !memcmp(errors[i].text, line, bytes))
			return i;
	return n;
}

/* Return the number in "CUDA error 700", "Cuda failure: 700" or Numba's "[700] Call to cuMemcpyDtoH results in ..."; 0: no number. */
static int number_in(const char *line)
{
	static const char *const words[] = { "cuda error", "cuda failure", "cuda runtime error", "cuda driver error", "cuda error code" };
	const char *call = strstr(line, "] Call to cu");
	int number = 0;

	if (call && isupper((unsigned char)call[12]) && (line = strchr(line, '[')))
		return atoi(line + 1);
	for (; *line && !number; line++)
		for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
			const size_t bytes = strlen(words[i]);

			if (!strncasecmp(line, words[i], bytes))
				number = atoi(line + bytes + strspn(line + bytes, " :=(#"));
		}
	return number;
}

const char *gpul_known_cuda_error(const char *line)
{
	enum { UNMISTAKABLE = 24 }; /* a text of at least this length is recognised as an error of CUDA anywhere in a line */
	const size_t n = sizeof errors / sizeof *errors;
	bool about_cuda;
	size_t best = n;

	for (size_t i = 1; i < n; i++)
		for (int k = 0; k < 2; k++)
			if (errors[i].names[k] && has_word(line, errors[i].names[k]))
				return advice_on(errors[i].number);
	about_cuda = is_about_cuda(line);
	for (size_t i = 1; i < n; i++) /* take the longest text, because one text may be contained in another */
		if (strstr(line, errors[i].text) && (about_cuda || strlen(errors[i].text) >= UNMISTAKABLE) &&
		    (best == n || strlen(errors[i].text) > strlen(errors[best].text)))
			best = i;
	if (best == n)
		best = find_whole_line(line);
	return best < n ? advice_on(errors[best].number) : advice_on(number_in(line));
}
