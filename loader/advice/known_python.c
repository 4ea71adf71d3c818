/* known_python.c — messages of software that uses CUDA: PyTorch, CuPy, Numba, CMake, NVIDIA's tools and container runtime. */
#include "loader/advice/known_internal.h"

#define NO_DRIVER \
	"NVIDIA's driver is not installed, not loaded, or not in this container (docker run --gpus all): see nvidia-smi; without a GPU: gpuload soft -- PROGRAM"
#define RESTART "the driver was updated while its old kernel module is loaded: reboot, or unload and load the module"

/* clang-format off */
static const struct gpul_known_message rows[] = {
	{ "CUDA out of memory", "", "use smaller batches or free tensors; if much is reserved but unallocated, set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" },
	{ "Out of memory allocating", "", "free arrays, or cupy.get_default_memory_pool().free_all_blocks(); nvidia-smi lists other processes that use the GPU" },
	{ "CUDA kernel errors might be asynchronously reported", "", "an earlier kernel failed: run with CUDA_LAUNCH_BLOCKING=1; the "
								     "Python line in the error is then the line that launched it" },
	{ "For debugging consider passing CUDA_LAUNCH_BLOCKING=1", "", "an earlier kernel failed: run with CUDA_LAUNCH_BLOCKING=1; the "
								       "Python line in the error is then the line that launched it" },
	{ "TORCH_USE_CUDA_DSA", "", "this is a setting for building PyTorch, not for running it; use CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer instead" },
	{ "Attempting to deserialize object on a CUDA device", "", "the file was saved on a GPU, but this machine has no GPU: use "
								   "torch.load(FILE, map_location=\"cpu\")" },
	{ "GPU compute capability ", "is not supported", "this Numba does not compile for that GPU: use an older Numba and CUDA version for an old GPU, newer ones for a new GPU" },
	{ "NvvmError: Failed to compile", "", "NVVM refused the kernel: the lines after this one say why; usually the versions of Numba and the CUDA toolkit do not match, so update both" },
	{ "will likely result in GPU under-utilization", "", "not an error: the grid has fewer blocks than the GPU has multiprocessors; "
							     "launch more, smaller blocks" },
	{ "Host array used in CUDA kernel will incur copy overhead", "", "not an error: copy the array once with cuda.to_device(), and pass "
									 "the result to the kernels" },
	{ "out of resource: shared memory", "", "a block of the Triton kernel needs more shared memory than the GPU has: use smaller "
						"BLOCK sizes or a smaller num_stages" },
	{ "out of resource: registers", "", "the Triton kernel needs more registers than the GPU has: use smaller BLOCK sizes, or a "
					    "larger num_warps" },
	{ "Could not load library libcudnn", "", "cuDNN is missing, or has a different version: install the version that the program "
						 "names, and add its folder to LD_LIBRARY_PATH" },
	{ "Failed to initialize NVML: Unknown Error", "", "the container lost the GPU, often after systemctl daemon-reload on the host: "
							  "start the container again, with --device /dev/nvidia0 and the other device "
							  "files" },
	{ "GPU has fallen off the bus", "", "the GPU no longer responds (power, heat, PCIe slot or a hardware fault): turn the machine "
					    "off and on, and see dmesg" },
	{ "NVRM: Xid", "MMU Fault", "a kernel accessed a bad address: find it with gpuload soft -- PROGRAM or compute-sanitizer" },
	{ "NVRM: Xid", "", "the driver reports a fault of the GPU or of a program: NVIDIA's Xid Errors page explains the number after the address" },
	{ "Torch not compiled with CUDA enabled", "", "this PyTorch was built for CPUs only: install a version for CUDA from "
						      "https://pytorch.org/get-started" },
	{ "Found no NVIDIA driver on your system", "", NO_DRIVER },
	{ "No CUDA GPUs are available", "", "no GPU is visible: check nvidia-smi, CUDA_VISIBLE_DEVICES and, in a container, the option "
					    "--gpus all" },
	{ "The NVIDIA driver on your system is too old", "", "update NVIDIA's driver, or install a version of the program for an older CUDA version" },
	{ "is not compatible with the current PyTorch installation", "", "this PyTorch has no code for that GPU: install a newer PyTorch for a newer CUDA version (or an older one for an old GPU)" },
	{ "Cannot re-initialize CUDA in forked subprocess", "", "a forked process cannot use the CUDA context of its parent: call "
								"multiprocessing.set_start_method('spawn')" },
	{ "Expected all tensors to be on the same device", "", "move the tensors to one device: tensor.to(device)" },
	{ "The detected CUDA version (", "mismatches", "nvcc and PyTorch have different CUDA versions: set CUDA_HOME to a toolkit of "
						       "PyTorch's version (torch.version.cuda)" },
	{ "CUDA_HOME environment variable is not set", "", "set CUDA_HOME to the toolkit, such as /usr/local/cuda; it must contain bin/nvcc" },
	{ "CUBLAS_STATUS_NOT_INITIALIZED", "", "cuBLAS could not start: usually the GPU has no memory left, or an earlier kernel failed; CUDA_LAUNCH_BLOCKING=1 finds an earlier failure" },
	{ "CUBLAS_STATUS_ALLOC_FAILED", "", "the GPU has no memory left for cuBLAS: use smaller batches" },
	{ "CUBLAS_STATUS_EXECUTION_FAILED", "", "a kernel of cuBLAS failed, often because an earlier kernel failed: run with "
						"CUDA_LAUNCH_BLOCKING=1" },
	{ "CUBLAS_STATUS_INVALID_VALUE", "", "cuBLAS was given a wrong size, stride or type: check the shapes of the matrices" },
	{ "CUBLAS_STATUS_NOT_SUPPORTED", "", "cuBLAS does not support this combination of types, sizes and alignment on this GPU" },
	{ "CUDNN_STATUS_NOT_INITIALIZED", "", "cuDNN could not start: the GPU has no memory left, or the versions of cuDNN, CUDA and the "
					      "driver do not match" },
	{ "CUDNN_STATUS_", "", "cuDNN refused the call: its manual explains %s; often the GPU has no memory left, or the versions of "
			       "cuDNN and CUDA do not match" },
	{ "NVIDIA-SMI has failed because it couldn't communicate", "", "the driver's kernel module is not loaded: after a kernel update install the driver again (DKMS), or reboot" },
	{ "Driver/library version mismatch", "", RESTART },
	{ "could not select device driver \"\" with capabilities: [[gpu]]", "", "install the NVIDIA Container Toolkit, and restart Docker" },
	{ "nvidia-container-cli: initialization error", "", "the host's NVIDIA driver does not work: run nvidia-smi on the host first" },
	{ "unsatisfied condition: cuda>=", "", "the container needs a newer driver on the host: update the driver, or use a container "
					       "image of "
					       "an older CUDA version" },
	{ "Error at driver init", "", NO_DRIVER },
	{ "CUDA driver library cannot be found", "", NO_DRIVER },
	{ "CUDA initialization: Unexpected error from cudaGetDeviceCount", "", "the driver does not start: see nvidia-smi and dmesg; "
									       "CUDA_VISIBLE_DEVICES must not be changed after CUDA is "
									       "initialised" },
	{ "cudaGetDeviceCount", "Did you run some cuda functions before calling NumCudaDevices", "the driver does not start: see nvidia-smi and dmesg" },
	{ "libNVVM cannot be found", "", "install the CUDA toolkit that Numba needs, or set CUDA_HOME (pip install numba-cuda[cu13])" },
	{ "Failed to auto-detect CUDA root directory", "", "set CUDA_PATH to the toolkit, such as /usr/local/cuda" },
	{ "CuPy failed to load lib", "", "the CUDA libraries are not of the version that CuPy needs: install the package for your CUDA version (cupy-cuda12x, cupy-cuda13x)" },
	{ "No CMAKE_CUDA_COMPILER could be found", "", "CMake does not find nvcc: add the toolkit's bin folder to PATH, or pass "
						       "-DCMAKE_CUDA_COMPILER=/usr/local/cuda/bin/nvcc" },
	{ "CMAKE_CUDA_ARCHITECTURES must be", "", "pass -DCMAKE_CUDA_ARCHITECTURES=90 (or the architecture of your GPU; native detects it)" },
	{ "Failed to detect a default CUDA architecture", "", "nvcc cannot compile CMake's test program: its output below says why, "
							      "often the host compiler (-DCMAKE_CUDA_HOST_COMPILER)" },
	{ "CUDA compiler identification is unknown", "", "nvcc cannot compile CMake's test program: build/CMakeFiles/CMakeError.log says "
							 "why" },
	{ "is not able to compile a simple test program", "", "the output below this line says why" },
	{ "Could NOT find CUDA", "", "CMake does not find the toolkit: add -DCUDAToolkit_ROOT=/usr/local/cuda, and add its bin folder to "
				     "PATH" },
	{ "Specify CUDA_TOOLKIT_ROOT_DIR", "", "CMake does not find the toolkit: add -DCUDA_TOOLKIT_ROOT_DIR=/usr/local/cuda" },
};
/* clang-format on */
#undef NO_DRIVER
#undef RESTART

const struct gpul_known_table gpul_known_python = { NULL, rows, sizeof rows / sizeof *rows };
