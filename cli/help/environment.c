/* environment.c — lists the environment variables that gpuload, its libraries and the software driver read. */
#include "cli/help/help.h"

#include <string.h>

const struct cli_variable cli_environment[] = {
	{ "GPULOAD_DRIVER", "auto, nvidia or soft: the driver to use if --driver is not given" },
	{ "GPULOAD_LOG", "off, notice, info or debug: which messages are printed on stderr" },
	{ "GPULOAD_CACHE", "the folder of the cache of compiled and linked code, or off: see gpuload cache" },
	{ "GPULOAD_CACHE_MAX_BYTES", "the largest size of the cache in bytes; K, M or G may follow (default: 256M)" },
	{ "GPULOAD_RUNTIME_DIR", "the folder of the sockets of shared memory (default: $XDG_RUNTIME_DIR/gpuload, else "
				 "/tmp/gpuload-UID)" },
	{ "GPULOAD_COMM_TABLE", "a file written by gpuload comm tune: the algorithms and protocols that gpul_comm_...() functions use" },
	{ "GPULOAD_SOFT_DRIVER", "the path of the software driver, libcuda-soft.so" },
	{ "GPULOAD_SOFT_DEVICES", "the number of devices of the software driver, 1 to 16 (default: 1)" },
	{ "GPULOAD_SOFT_SM", "the compute capability of these devices, as in sm_90 (default: 90)" },
	{ "GPULOAD_SOFT_CUDA", "the version of CUDA that the software driver reports, as in 13.4 (default: 13.0)" },
	{ "GPULOAD_SOFT_MEMORY", "the memory of each of these devices in bytes; K, M, G or T may follow (default: that of the machine)" },
	{ "GPULOAD_SOFT_ISA",
	  "base, v3 or v4: which build of the PTX interpreter to use: for plain x86-64, AVX2 or AVX-512 (default: the best "
	  "that the CPU can run)" },
	{ "GPULOAD_SOFT_NATIVE", "0: the software driver interprets every instruction, instead of compiling sequences to AVX-512 code" },
	{ "GPULOAD_SOFT_QUIET", "1: the software driver prints neither the faults of kernels nor mistakes of the program" },
	{ "GPULOAD_SOFT_STRICT", "1: the software driver refuses the PTX that NVIDIA's ptxas refuses, with the reason on stderr" },
	{ "GPULOAD_SOFT_LAZY",
	  "1: the software driver parses and decodes each PTX function when it is first needed, 0: when the module is loaded (default: "
	  "when first needed only for 1 MiB or more of linked PTX, and for 32 KiB or more in a fatbin that an earlier process has loaded)" },
	{ "GPULOAD_SOFT_TOOLS",
	  "tools that watch the kernels of a program on the software driver: memcheck, racecheck, synccheck, profile, trace ..., "
	  "with options (NAME:KEY=VALUE,NAME ...); help lists them" },
	{ "GPULOAD_SOFT_TOOLS_EXIT", "the exit status, instead of 0, of a program in which one of these tools has found an error" },
	{ "GPULOAD_SOFT_TOOLS_LOG", "a file to which these tools append what they report, instead of printing it on stderr" },
	{ "LD_LIBRARY_PATH", "gpuload soft, step --program and dap prepend the folder of the software driver; it is also searched for "
			     "NVIDIA's libraries" },
	{ "LD_PRELOAD", "gpuload soft appends the libraries beside the software driver" },
	{ "LD_AUDIT", "gpuload soft appends the library that redirects the calls of a statically linked CUDA runtime" },
	{ "GPULOAD_CUDART_STATIC", "the path of a libcudart_static.a, which the redirecting library needs if the program has no symbols" },
	{ "GPULOAD_PROBE", "the path of gpuload-probe, which tests the kinds of memory" },
	{ "GPULOAD_NVRTC", "the path of NVRTC, libnvrtc.so" },
	{ "GPULOAD_NVJITLINK", "the path of nvJitLink, libnvJitLink.so" },
	{ "GPULOAD_NVFATBIN", "the path of nvFatbin, libnvfatbin.so" },
	{ "GPULOAD_PTXAS", "the path of NVIDIA's ptxas, which the ptxas beside the software driver calls" },
	{ "GPULOAD_IBVERBS", "the path of a library to use instead of libibverbs.so.1" },
	{ "GPULOAD_LIBFABRIC", "the path of a library to use instead of libfabric.so.1" },
	{ "GPULOAD_LIBPMIX", "the path of a library to use instead of libpmix.so.2" },
	{ "GPULOAD_SYSFS", "a folder to read instead of /sys, to find the distance between NICs and GPUs" },
	{ "GPULOAD_NVCC", "the path of nvcc, which compiles programs that launch kernels with <<<...>>>" },
	{ "GPULOAD_RT", "the path of libgpuload-rt.a, which is linked into programs that launch kernels with <<<...>>>" },
	{ "CUDA_HOME", "the folder of the CUDA toolkit, for NVRTC, its headers and nvJitLink" },
	{ "CUDA_PATH", "like CUDA_HOME, but for the libraries beside the software driver that forward calls to NVIDIA's libraries" },
	{ "GPULOAD_SITE_PACKAGES", "for the libraries that forward calls to NVIDIA's: a folder of Python packages with NVIDIA's wheels" },
	{ "VIRTUAL_ENV", "for the libraries that forward calls to NVIDIA's: a Python environment with NVIDIA's wheels" },
	{ "CONDA_PREFIX", "for the libraries that forward calls to NVIDIA's: a conda environment with NVIDIA's wheels or libraries" },
	{ "CUDA_VISIBLE_DEVICES", "which devices the driver reports (NVIDIA's driver or the software driver)" },
	{ "GPULOAD_COMM_RANK", "the rank of this process; set by gpuload's launcher, as are _SIZE, _JOB and _NOTICE" },
	{ "GPULOAD_COMM_SIZE", "the number of ranks" },
	{ "GPULOAD_COMM_JOB", "the name of the job, by which its ranks find each other" },
	{ "GPULOAD_COMM_HOST", "a name for this rank's host (default: the machine's name): ranks of different hosts do not share memory" },
	{ "GPULOAD_COMM_ADDRESS", "HOST:PORT where rank 0 listens, if ranks are on several machines" },
	{ "GPULOAD_COMM_SECRET", "a secret, the same for all ranks of several machines, at least 16 characters; it is never sent" },
	{ "GPULOAD_COMM_INTERFACE", "the name or number of the network interface that rank 0 uses, if there are several" },
	{ "GPULOAD_COMM_AGENT", "with --hosts: the program that runs a command on another machine (default: ssh)" },
	{ "GPULOAD_COMM_LOST_MS",
	  "milliseconds without a message after which a machine is treated as failed (default: 8000, at least 1000)" },
	{ "GPULOAD_COMM_NET_ADDRESS",
	  "this host's address for the network between ranks, or one for each NIC (default: the NIC's address, or that of the route to "
	  "rank 0)" },
	{ "GPULOAD_COMM_NET_WINDOW",
	  "limit of bytes in flight to one rank over the network, from all ranks together, or off (default: a few slots)" },
	{ "GPULOAD_COMM_NOTICE", "the file descriptor on which the launcher reports ranks that have ended" },
	{ "GPULOAD_RDMA_SECRET",
	  "a secret shared by rdma serve and rdma bench: each proves that it knows the secret, and refuses a peer that does not; it is "
	  "never sent" },
	{ "PMIX_RANK", "the rank of this process, set by mpirun and srun" },
	{ "PMIX_NAMESPACE", "the name of the job, set by mpirun and srun" },
	{ "OMPI_COMM_WORLD_SIZE", "the number of ranks, set by Open MPI's mpirun; used without libpmix" },
	{ "OMPI_COMM_WORLD_LOCAL_SIZE", "the number of ranks on this machine, set by Open MPI's mpirun" },
	{ "SLURM_NTASKS", "the number of ranks, set by srun; used with PMIX_RANK, but without libpmix" },
	{ "SLURM_PROCID", "the rank of this process, set by srun, as are the next five; used without PMIx" },
	{ "SLURM_STEP_NUM_TASKS", "the number of ranks; 1: this is not a job of several ranks" },
	{ "SLURM_STEP_NUM_NODES", "the number of machines" },
	{ "SLURM_STEP_NODELIST", "the machines; rank 0 listens on the first one" },
	{ "SLURM_JOB_ID", "together with the next variable, determines the name of the job and the port of rank 0" },
	{ "SLURM_STEP_ID", "see SLURM_JOB_ID" },
	{ "RANK", "the rank of this process, set by torchrun, as are the next seven" },
	{ "WORLD_SIZE", "the number of ranks" },
	{ "LOCAL_RANK", "the rank on this machine" },
	{ "LOCAL_WORLD_SIZE", "the number of ranks on this machine" },
	{ "MASTER_ADDR", "this and the next three identify the job; if ranks are on several machines, rank 0 listens at this address" },
	{ "MASTER_PORT", "see MASTER_ADDR; rank 0 listens on the port number after this one, which torchrun itself uses" },
	{ "TORCHELASTIC_RUN_ID", "see MASTER_ADDR" },
	{ "TORCHELASTIC_RESTART_COUNT", "see MASTER_ADDR" },
	{ "PATH", "the folders in which nvcc and the C++ compiler are looked up" },
	{ "NVCC_APPEND_FLAGS", "options of nvcc, to which gpuload soft adds -lineinfo" },
	{ "NVCC_PREPEND_FLAGS", "options of nvcc; when they change, gpuload run builds a cached program again" },
	{ "TMPDIR", "the folder of temporary files (default: /tmp)" },
	{ "HOME", "the folder of the user: the cache is in its .cache unless XDG_CACHE_HOME is set" },
	{ "XDG_CACHE_HOME", "the folder of caches" },
	{ "XDG_RUNTIME_DIR", "the folder of sockets" },
	{ 0 },
};

void cli_print_environment(void)
{
	printf("The environment variables of gpuload, its libraries and the software driver:\n\n");
	for (const struct cli_variable *v = cli_environment; v->name; v++) {
		printf("  %-26s ", v->name);
		cli_fill(v->what, strlen(v->what), 29, 29);
	}
}
