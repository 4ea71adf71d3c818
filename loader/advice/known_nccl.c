/* known_nccl.c — messages of NCCL: its error texts, and the lines that NCCL_DEBUG=WARN prints.
 *
 * A line that contains a CUDA error ("Cuda failure 700 '...'") gets the advice on that error. */
#include "loader/advice/known_internal.h"

#define SEE_WARN "run with NCCL_DEBUG=WARN: NCCL prints the reason, and the rank on which it happened first"
#define PEER_LEFT \
	"another rank ended or cannot be reached: look for the first error in the logs of all ranks; if there is none, check firewall and NCCL_SOCKET_IFNAME"
#define NO_ANSWER \
	"the peer did not answer over RDMA: it has ended, or the path is broken (NCCL_IB_HCA, NCCL_IB_GID_INDEX, cables); a larger " \
	"NCCL_IB_TIMEOUT waits longer"
#define OLD_CONFIG "initialise the structure with the macro that the message names before setting its members"

/* clang-format off */
static const struct gpul_known_message warnings[] = {
	{ "Failed to find CUDA library", "", "libcuda.so.1 is missing: install NVIDIA's driver, or start the container with --gpus all" },
	{ "failed to extend /dev/shm", "", "/dev/shm is full or too small: in Docker start with --shm-size=1g or --ipc=host" },
	{ "Missing \"iommu=pt\"", "", "not an error, but transfers between GPUs can hang or be slow: add iommu=pt to the kernel's "
				      "command line, and reboot" },
	{ "NUMA auto balancing enabled", "", "not an error, but slower: sudo sysctl kernel.numa_balancing=0" },
	{ "Mismatched collective detected", "", "the ranks call different collectives, or the same one with different counts: compare "
						"the calls of all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL" },
	{ "Invalid config ", "", "a member of ncclConfig_t has a value that is not allowed: begin with NCCL_CONFIG_INITIALIZER, and set only what you need" },
	{ "nv_peer_mem", "", "GPUDirect RDMA is not available: load the module nvidia-peermem (modprobe nvidia-peermem); without it NCCL copies through the host" },
	{ "Too many open files", "", "raise the limit of open files: ulimit -n 65536" },
	{ "NCCL_IB_HCA", "", "NCCL_IB_HCA names no device of this host: ibv_devinfo -l lists them" },
	{ "NVLS", "", "no multicast over NVLink here (fabric manager, or a virtual machine): NCCL_NVLS_ENABLE=0 turns it off" },
	{ "Software caused connection abort", "", PEER_LEFT },
	{ "Call to connect", "Connection timed out", "the hosts cannot reach each other: check the firewall, and choose the interface "
						     "with NCCL_SOCKET_IFNAME" },
	{ "Your program may be hanging", "", "the ranks call different collectives, or one rank calls none: compare the calls of all ranks with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=COLL" },
	{ "Duplicate GPU detected", "", "two ranks use one GPU: call cudaSetDevice(local rank) in each, before the communicator is created" },
	{ "Multiple Ranks are using the same GPU", "", "two ranks use one GPU: call cudaSetDevice(local rank) in each, before the communicator is created" },
	{ "Mismatched NCCL version detected", "", "all ranks must use one NCCL version: check LD_LIBRARY_PATH and the packages on each host" },
	{ "Mismatched NCCL git versions", "", "all ranks must use one NCCL version: check LD_LIBRARY_PATH and the packages on each host" },
	{ "NCCL library is not backwards compatible", "", "load the NCCL version that the program was built for, or a newer one: check LD_LIBRARY_PATH" },
	{ "Error while creating shared memory segment", "", "/dev/shm is full or too small: in Docker start with --shm-size=1g or --ipc=host" },
	{ "Call to posix_fallocate failed", "", "/dev/shm is full or too small: in Docker start with --shm-size=1g or --ipc=host" },
	{ "No space left on device", "", "/dev/shm is full or too small: in Docker start with --shm-size=1g or --ipc=host" },
	{ "cuMem host allocations do not appear to be working", "", "not an error: the container has no access to NUMA calls; docker run "
								    "--cap-add SYS_NICE allows them" },
	{ "Bootstrap : no socket interface found", "", "no network interface can be used: name one with NCCL_SOCKET_IFNAME, such as "
						       "eth0, or lo on one host" },
	{ "no socket interface found", "", "no network interface can be used: name one with NCCL_SOCKET_IFNAME, such as eth0, or lo on "
					   "one host" },
	{ "No interface found", "NCCL_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME names no interface of this host: ip addr lists them" },
	{ "Invalid NCCL_COMM_ID", "", "write NCCL_COMM_ID=ADDRESS:PORT of a host on which rank 0 runs" },
	{ "Call to connect", "Connection refused", "no process listens at that address: rank 0 has ended or has not started yet, or a firewall "
"refuses the connection; check NCCL_SOCKET_IFNAME" },
	{ "Connect to", "Connection refused", "no process listens at that address: rank 0 has ended or has not started yet, or a firewall "
"refuses the connection; check NCCL_SOCKET_IFNAME" },
	{ "failed : Connection refused", "", "no process listens at that address: rank 0 has ended or has not started yet, or a firewall "
"refuses the connection; check NCCL_SOCKET_IFNAME" },
	{ "No route to host", "", "the hosts cannot reach each other over this interface: choose another with NCCL_SOCKET_IFNAME, and "
				  "check the firewall" },
	{ "Call to ", "failed : Software caused connection abort", PEER_LEFT },
	{ "Call to ", "failed : Connection timed out", "the hosts cannot reach each other: check the firewall, and choose the interface "
						       "with NCCL_SOCKET_IFNAME" },
	{ "Call to ", "failed : Connection reset by peer", PEER_LEFT },
	{ "Call to ", "failed : Broken pipe", PEER_LEFT },
	{ "Connection closed by remote peer", "", PEER_LEFT },
	{ "Connection closed by localRank", "", "the process of that rank on this host has ended: look for its error" },
	{ "socket", "Too many open files", "raise the limit of open files: ulimit -n 65536" },
	{ "Call to bind failed", "Address already in use", "another process uses the port: end it, or choose another port" },
	{ "Got completion", "status=12", NO_ANSWER },
	{ "Got completion", "(12)", NO_ANSWER },
	{ "Got completion", "error 12", NO_ANSWER },
	{ "Got completion", "WR_FLUSH", "the connection was torn down because of an earlier error: look for the first one" },
	{ "Got completion", "status=5 ", "the connection was torn down because of an earlier error: look for the first one" },
	{ "Got completion", "error 5,", "the connection was torn down because of an earlier error: look for the first one" },
	{ "Got completion", "", "an RDMA operation failed: look for the first error in the logs of both ranks, and run ibv_devinfo on "
				"both hosts" },
	{ "async event", "", "the network card reports an event, such as a port that went down: look at the output of ibstat and at the "
			     "kernel's log" },
	{ "Call to ibv_reg_mr", "failed with error Cannot allocate memory", "the limit of locked memory is too low: ulimit -l unlimited (in Docker: --ulimit memlock=-1)" },
	{ "Call to ibv_create_", "failed with error Cannot allocate memory", "the limit of locked memory is too low: ulimit -l unlimited (in Docker: --ulimit memlock=-1)" },
	{ "Call to ibv_modify_qp failed", "", "the RDMA path cannot be set up: choose card and address with NCCL_IB_HCA and NCCL_IB_GID_INDEX; NCCL_IB_DISABLE=1 uses TCP" },
	{ "Call to ibv_", "failed", "the RDMA device refuses the call: check ibv_devinfo, the limit of locked memory (ulimit -l) and the container's devices; NCCL_IB_DISABLE=1 uses TCP" },
	{ "P2P is disabled between NVLINK connected GPUs", "", "a hardware or driver fault: see nvidia-smi topo -p2p n and nvidia-smi "
							       "nvlink -s; the message names the variable with which NCCL continues "
							       "without P2P" },
	{ "P2P not supported between GPU", "", "the GPUs cannot access each other's memory: NCCL_P2P_DISABLE=1 uses host memory" },
	{ "available but not working on this system", "", "the fabric service for multi-node NVLink (IMEX) is not set up: see "
							  "nvidia-imex-ctl -N, or set NCCL_MNNVL_ENABLE=0" },
	{ "Failed to open libibverbs.so", "", "not an error on hosts without InfiniBand: NCCL uses TCP; for RDMA install libibverbs" },
	{ "NET/IB : No device found", "", "not an error on hosts without InfiniBand: NCCL uses TCP; for RDMA check ibv_devices, NCCL_IB_HCA "
					  "and the container's /dev/infiniband" },
	{ "NET/Plugin", "", "not an error: without a plug-in NCCL uses its own sockets and InfiniBand" },
	{ "Detected mixed local", "counts across ranks", "hosts have different network cards: the message names the variable with which "
							 "NCCL continues; or select cards of the same kind with NCCL_IB_HCA" },
	{ "mismatch in info from procs", "", "ranks were started with different numbers of ranks: pass the same number to ncclCommInitRank() in all" },
	{ "Bootstrap Root : rank", "of", "two processes joined with the same rank, or one process is left over from an earlier run: give "
					 "each its own rank, and create a new ncclUniqueId for each run" },
	{ "argument not initialized via NCCL_", "", OLD_CONFIG },
	{ "argument must be initialized via NCCL_", "", OLD_CONFIG },
	{ "Blocking and nonblocking communicators are not allowed in the same group", "", "use either blocking or nonblocking "
											  "communicators between ncclGroupStart() and "
											  "ncclGroupEnd(), not both" },
	{ "not in a group call", "", "ncclGroupEnd() was called without ncclGroupStart(): call them in pairs" },
	{ "Invalid rank requested", "", "ranks are 0 to number of ranks - 1: check what each process passes to ncclCommInitRank()" },
	{ "invalid device count", "", "the number of devices must be 1 up to what cudaGetDeviceCount() returns" },
	{ "Invalid device count", "", "the number of devices must be 1 up to what cudaGetDeviceCount() returns" },
	{ "is not a valid pointer", "", "NCCL needs memory of a GPU (cudaMalloc) for its buffers: a host pointer or freed memory was passed" },
	{ "mismatchs with NCCL device", "", "the buffer is on another GPU than the communicator: allocate after cudaSetDevice(), or use "
					    "the communicator of that GPU" },
	{ "root should be in the", "", "the root must be a rank of this communicator: 0 to number of ranks - 1" },
	{ "invalid reduction operation", "", "pass ncclSum, ncclProd, ncclMax, ncclMin, ncclAvg, or an operation of this communicator" },
	{ "corrupted comm object detected", "", "the communicator was destroyed or never initialised" },
	{ "is in abort state", "", "the communicator was aborted after an error: look for the first error; then create a new communicator" },
	{ "NCCL cannot be captured in a graph", "", "update the driver: capturing NCCL in a graph needs CUDA 11.3" },
	{ "Could not open XML topology file", "", "NCCL_TOPO_FILE names a file that cannot be read" },
	{ "XML Parse error", "", "the file of NCCL_TOPO_FILE or NCCL_GRAPH_FILE is damaged: create a new one with NCCL_TOPO_DUMP_FILE" },
};
/* clang-format on */

/* NCCL's error texts, and messages of PyTorch. */
/* clang-format off */
static const struct gpul_known_message results[] = {
	{ "Watchdog caught collective operation timeout", "",
	  "a rank did not join the collective in time: it ended, hangs, or called another one; TORCH_NCCL_TRACE_BUFFER_SIZE=2000 records the calls of each" },
	{ "Timeout at NCCL work", "", "a rank did not join the collective in time: find the rank that lags or has ended, or increase the "
				      "time-out that init_process_group() sets" },
	{ "NCCL communicator was aborted", "", "an earlier error or time-out ended the communicator: look for the first error in the logs of all ranks" },
	{ "Some NCCL operations have failed or timed out", "", "look for the first error in the logs of all ranks: the later ones follow from it" },
	{ "Stop_waiting response is expected", "", "the rank with the store (rank 0) has ended: look for the first error in its log" },
	{ "unhandled cuda error", "", "a CUDA call in NCCL failed: NCCL_DEBUG=WARN prints its error, which gpuload explain can explain" },
	{ "ncclUnhandledCudaError", "", "a CUDA call in NCCL failed: NCCL_DEBUG=WARN prints its error, which gpuload explain can explain" },
	{ "unhandled system error", "", "a system call in NCCL failed, such as one for a socket or shared memory: " SEE_WARN },
	{ "ncclSystemError", "", "a system call in NCCL failed, such as one for a socket or shared memory: " SEE_WARN },
	{ "please report this issue to the NCCL developers", "", "an internal error of NCCL, or a problem with this machine: " SEE_WARN },
	{ "ncclInternalError", "", "an internal error of NCCL, or a problem with this machine: " SEE_WARN },
	{ "invalid argument (run with NCCL_DEBUG", "", "an argument of the NCCL call is wrong: " SEE_WARN },
	{ "ncclInvalidArgument", "", "an argument of the NCCL call is wrong: " SEE_WARN },
	{ "invalid usage", "", "NCCL is used incorrectly, such as two ranks on one GPU, or different calls on different ranks: " SEE_WARN },
	{ "ncclInvalidUsage", "", "NCCL is used incorrectly, such as two ranks on one GPU, or different calls on different ranks: "
				  "" SEE_WARN },
	{ "remote process exited or there was a network error", "", PEER_LEFT },
	{ "ncclRemoteError", "", PEER_LEFT },
	{ "NCCL operation in progress", "", "not an error: call ncclCommGetAsyncError() until the state is ncclSuccess" },
	{ "ncclInProgress", "", "not an error: call ncclCommGetAsyncError() until the state is ncclSuccess" },
};
/* clang-format on */
#undef SEE_WARN
#undef PEER_LEFT
#undef NO_ANSWER
#undef OLD_CONFIG

const struct gpul_known_table gpul_known_nccl = { NULL, results, sizeof results / sizeof *results };
const struct gpul_known_table gpul_known_nccl_warning = { "NCCL", warnings, sizeof warnings / sizeof *warnings };
