/* test_soft.c — the runtime on the software driver, without nvcc: two devices, contexts of the driver API, threads,
 * code that is registered and unregistered.  This file builds a fat binary from PTX. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "nvidia/cudart/rt_calls_internal.h"

/* Two kernels: add(p) does *p += plus++, and wait(p) waits until *p is not 0. */
static const char ptx[] = ".version 8.0\n.target sm_75\n.address_size 64\n"
			  ".visible .global .align 4 .u32 plus = 5;\n"
			  ".visible .entry add(.param .u64 p) {\n"
			  ".reg .b32 %r<4>; .reg .b64 %rd<3>;\n"
			  "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [plus];\n"
			  "add.s32 %r1, %r1, %r2; st.global.u32 [%rd1], %r1;\n"
			  "add.s32 %r2, %r2, 1; st.global.u32 [plus], %r2; ret; }\n"
			  ".visible .entry wait(.param .u64 p) {\n"
			  ".reg .b32 %r<2>; .reg .b64 %rd<2>; .reg .pred %p<2>;\n"
			  "ld.param.u64 %rd1, [p];\n"
			  "again: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.s32 %p1, %r1, 0;\n"
			  "@%p1 bra again; ret; }\n";

/* A fat binary with one entry of uncompressed PTX: a header of 16 bytes, an entry of 64 bytes, the text. */
static struct fatbin {
	uint32_t magic;
	uint16_t version, header_bytes;
	uint64_t payload_bytes;
	uint16_t kind, unknown;
	uint32_t entry_bytes;
	uint64_t padded_bytes;
	uint32_t compressed_bytes, options_offset;
	uint16_t minor, major;
	uint32_t arch, ident_offset, ident_bytes;
	uint64_t flags, zero, uncompressed_bytes;
	char text[1024];
} fatbin = {
	.magic = 0xba55ed50u,
	.version = 1,
	.header_bytes = 16,
	.payload_bytes = 64 + 1024,
	.kind = 1,
	.unknown = 0x0101,
	.entry_bytes = 64,
	.padded_bytes = 1024,
	.minor = 0,
	.major = 8,
	.arch = 75,
	.flags = 0x11,
};
_Static_assert(offsetof(struct fatbin, text) == 80, "the layout that NVIDIA's tools write");

static gpul_rt_wrapper wrapper = { GPUL_RT_WRAPPER_MAGIC, GPUL_RT_WHOLE, NULL, NULL };
static char stub, wait_stub;
static unsigned plus_shadow;
static char kernel_name[] = "add", wait_name[] = "wait", variable_name[] = "plus";
static const dim3 one = { 1, 1, 1 };

static void **registered(void)
{
	void **handle;

	memcpy(fatbin.text, ptx, sizeof ptx);
	wrapper.fatbin = &fatbin;
	handle = __cudaRegisterFatBinary(&wrapper);
	__cudaRegisterFunction(handle, &stub, &stub, kernel_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterFunction(handle, &wait_stub, &wait_stub, wait_name, -1, NULL, NULL, NULL, NULL, NULL);
	__cudaRegisterVar(handle, (char *)&plus_shadow, (char *)&plus_shadow, variable_name, 0, sizeof plus_shadow, 0, 0);
	__cudaRegisterFatBinaryEnd(handle);
	return handle;
}

/* ---- exit of a process: in a child, before this process opens the driver ------------------ */

static void **of_child;

static void unregister(void)
{
	__cudaUnregisterFatBinary(of_child);
}

static void leave_while_a_kernel_runs(void)
{
	unsigned *p = NULL;
	void *args[] = { &p };

	alarm(20); /* SIGALRM ends a child that hangs */
	of_child = registered();
	atexit(unregister); /* the constructor that nvcc generates does this too */
	if (cudaMalloc((void **)&p, sizeof *p) || cudaMemset(p, 0, sizeof *p) || cudaLaunchKernel(&wait_stub, one, one, args, 0, NULL))
		_exit(1);
	exit(cudaStreamQuery(NULL) == cudaErrorNotReady ? 0 : 2);
}

static void a_process_can_exit_while_a_kernel_runs(void **state)
{
	pid_t child = fork();
	int status = -1;

	(void)state;
	if (!child)
		leave_while_a_kernel_runs();
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- two devices ------------------------------------------------------------------------- */

static cudaError_t add(unsigned *device_pointer)
{
	void *args[] = { &device_pointer };

	return cudaLaunchKernel(&stub, one, one, args, 0, NULL);
}

/* Launch add() n times on a word that is 0 at first; return the final value. */
static unsigned added(int n)
{
	unsigned *d, h = 0;

	assert_int_equal(cudaMalloc((void **)&d, sizeof h), cudaSuccess);
	assert_int_equal(cudaMemset(d, 0, sizeof h), cudaSuccess);
	for (int i = 0; i < n; i++)
		assert_int_equal(add(d), cudaSuccess);
	assert_int_equal(cudaMemcpy(&h, d, sizeof h, cudaMemcpyDeviceToHost), cudaSuccess);
	assert_int_equal(cudaFree(d), cudaSuccess);
	return h;
}

static void each_device_has_its_own_copy_of_a_variable(void **state)
{
	void **handle = registered();
	int n = 0, device = -1;
	unsigned plus = 100;

	(void)state;
	assert_int_equal(cudaGetDeviceCount(&n), cudaSuccess);
	assert_int_equal(n, 2);
	assert_int_equal(added(2), 5 + 6);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	assert_int_equal(added(1), 5);
	assert_int_equal(cudaMemcpyToSymbol(&plus_shadow, &plus, sizeof plus, 0, cudaMemcpyHostToDevice), cudaSuccess);
	assert_int_equal(added(1), 100);
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 1);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	assert_int_equal(added(1), 7);
	__cudaUnregisterFatBinary(handle);
}

static void registering_code_again_resets_its_variables(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		void **handle = registered();

		assert_int_equal(added(3), 5 + 6 + 7);
		__cudaUnregisterFatBinary(handle);
		assert_int_equal(add(NULL), cudaErrorInvalidResourceHandle);
	}
	(void)cudaGetLastError();
}

/* Return a driver function that cudaGetDriverEntryPoint finds. */
static void *entry(const char *name, unsigned version)
{
	enum cudaDriverEntryPointQueryResult found;
	void *p = NULL;

	assert_int_equal(cudaGetDriverEntryPointByVersion(name, &p, version, cudaEnableDefault, &found), cudaSuccess);
	assert_int_equal(found, cudaDriverEntryPointSuccess);
	return p;
}

static void uses_and_keeps_a_context_that_the_program_made_current(void **state)
{
	CUresult (*create)(CUcontext *, unsigned, CUdevice);
	CUresult (*destroy)(CUcontext), (*current)(CUcontext *);
	void *p[] = { entry("cuCtxCreate", 3020), entry("cuCtxDestroy", 4000), entry("cuCtxGetCurrent", 4000) };
	CUcontext own = NULL, now = NULL;
	void **handle = registered();
	int device = -1;

	(void)state;
	memcpy(&create, &p[0], sizeof create);
	memcpy(&destroy, &p[1], sizeof destroy);
	memcpy(&current, &p[2], sizeof current);
	assert_int_equal(added(1), 5);
	assert_int_equal(create(&own, 0, 1), CUDA_SUCCESS);
	assert_int_equal(added(2), 5 + 6); /* this context has its own copy of the variable */
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 1);
	assert_int_equal(current(&now), CUDA_SUCCESS);
	assert_ptr_equal(now, own);
	assert_int_equal(destroy(own), CUDA_SUCCESS);
	assert_int_equal(added(1), 6); /* the primary context is current again */
	assert_int_equal(cudaGetDevice(&device), cudaSuccess);
	assert_int_equal(device, 0);
	__cudaUnregisterFatBinary(handle);
}

static void *launch_often(void *failed)
{
	unsigned *d;

	if (cudaMalloc((void **)&d, sizeof *d) || cudaMemset(d, 0, sizeof *d))
		return failed;
	for (int i = 0; i < 50; i++)
		if (add(d) || cudaStreamSynchronize(NULL))
			return failed;
	return cudaFree(d) ? failed : NULL;
}

static void several_threads_may_make_the_first_call_at_once(void **state)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];
	void **handle = registered(), *failed;

	(void)state;
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, launch_often, &stub), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	__cudaUnregisterFatBinary(handle);
}

static pthread_barrier_t both;

static void *work_before_and_after_a_reset(void *failed)
{
	void *p = NULL;
	cudaError_t e = cudaMalloc(&p, 16);

	pthread_barrier_wait(&both); /* the main thread resets the device between the two barriers */
	pthread_barrier_wait(&both);
	if (!e)
		e = cudaMalloc(&p, 16);
	if (!e)
		e = cudaFree(p);
	return e ? failed : NULL;
}

static void a_reset_affects_the_other_threads(void **state)
{
	void **handle = registered(), *failed;
	pthread_t thread;

	(void)state;
	assert_int_equal(added(2), 5 + 6);
	assert_int_equal(pthread_barrier_init(&both, NULL, 2), 0);
	assert_int_equal(pthread_create(&thread, NULL, work_before_and_after_a_reset, &stub), 0);
	pthread_barrier_wait(&both);
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	pthread_barrier_wait(&both);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
	assert_int_equal(added(1), 5); /* the variable has its initial value again */
	pthread_barrier_destroy(&both);
	__cudaUnregisterFatBinary(handle);
}

static void a_reset_clears_a_fault(void **state)
{
	void **handle = registered();

	(void)state;
	assert_int_equal(add((unsigned *)16), cudaSuccess);
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaErrorIllegalAddress);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress); /* the error is sticky */
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(added(1), 5);
	__cudaUnregisterFatBinary(handle);
}

/* A program may ignore all errors, so the driver prints the description of a fault on stderr, once. */
static void a_fault_is_printed_once(void **state)
{
	void **handle = registered();
	char text[1024] = "";
	int saved = dup(STDERR_FILENO), file = memfd_create("stderr", 0);

	(void)state;
	assert_true(saved >= 0 && file >= 0 && dup2(file, STDERR_FILENO) >= 0);
	assert_int_equal(add((unsigned *)16), cudaSuccess);
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_true(pread(file, text, sizeof text - 1, 0) > 0);
	close(file);
	assert_non_null(strstr(text, "4-byte global load at 0x10 is a NULL pointer; add, block 0, thread 0\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* the text is one line */
	assert_int_equal(cudaDeviceReset(), cudaSuccess);
	__cudaUnregisterFatBinary(handle);
}

static void peer_devices_access_each_others_memory(void **state)
{
	void **handle = registered();
	unsigned *on_0 = NULL, *on_1 = NULL, seen = 0;
	int can = 0;

	(void)state;
	assert_int_equal(cudaDeviceCanAccessPeer(&can, 1, 0), cudaSuccess);
	assert_int_equal(can, 1);
	assert_int_equal(cudaMalloc((void **)&on_0, 4), cudaSuccess);
	assert_int_equal(cudaMemset(on_0, 0, 4), cudaSuccess);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaSuccess);
	assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), cudaErrorPeerAccessAlreadyEnabled);
	assert_int_equal(cudaGetLastError(), cudaErrorPeerAccessAlreadyEnabled);
	assert_int_equal(add(on_0), cudaSuccess);
	assert_int_equal(cudaMalloc((void **)&on_1, 4), cudaSuccess);
	assert_int_equal(cudaMemcpyPeer(on_1, 1, on_0, 0, 4), cudaSuccess);
	assert_int_equal(cudaMemcpyPeerAsync(on_0, 0, on_1, 1, 4, NULL), cudaSuccess);
	assert_int_equal(cudaMemcpy(&seen, on_1, 4, cudaMemcpyDeviceToHost), cudaSuccess);
	assert_int_equal(seen, 5);
	assert_int_equal(cudaMemcpyPeer(on_1, 9, on_0, 0, 4), cudaErrorInvalidDevice);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
	assert_int_equal(cudaDeviceDisablePeerAccess(0), cudaSuccess);
	assert_int_equal(cudaFree(on_1), cudaSuccess);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	assert_int_equal(cudaFree(on_0), cudaSuccess);
	__cudaUnregisterFatBinary(handle);
}

/* Runs in the second child: opens the memory and the event of share(), waits for the event, and checks the bytes. */
static int check_shared_memory(int from_owner)
{
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t ready;
	cudaEvent_t event;
	unsigned *p, word = 0;

	if (read(from_owner, &memory, sizeof memory) != sizeof memory || read(from_owner, &ready, sizeof ready) != sizeof ready)
		return 1;
	if (cudaIpcOpenMemHandle((void **)&p, memory, cudaIpcMemLazyEnablePeerAccess) || cudaIpcOpenEventHandle(&event, ready) ||
	    cudaEventSynchronize(event))
		return 2;
	if (cudaMemcpy(&word, p, 4, cudaMemcpyDeviceToHost) || word != 0x07070707)
		return 3;
	return cudaIpcCloseMemHandle(p) || cudaEventDestroy(event) ? 4 : 0;
}

static int share(int to_other)
{
	cudaIpcMemHandle_t memory;
	cudaIpcEventHandle_t ready;
	cudaEvent_t event;
	void *p;
	char end;

	if (cudaMalloc(&p, 4096) || cudaMemset(p, 7, 4096) ||
	    cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming) || cudaEventRecord(event, NULL) ||
	    cudaIpcGetMemHandle(&memory, p) || cudaIpcGetEventHandle(&ready, event))
		return 5;
	if (write(to_other, &memory, sizeof memory) != sizeof memory || write(to_other, &ready, sizeof ready) != sizeof ready)
		return 6;
	return read(to_other, &end, 1) ? 7 : 0; /* keep the memory until the other child has ended, which closes the socket */
}

static void two_processes_share_memory_and_an_event(void **state)
{
	int status = -1, fd[2];
	pid_t pids[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (!pids[i]) {
			close(fd[!i]);
			_exit(i ? check_shared_memory(fd[1]) : share(fd[0]));
		}
	}
	close(fd[0]);
	close(fd[1]);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_can_exit_while_a_kernel_runs),  /* first, because it forks before the driver is open */
		cmocka_unit_test(two_processes_share_memory_and_an_event), /* also forks before the driver is open */
		cmocka_unit_test(each_device_has_its_own_copy_of_a_variable),
		cmocka_unit_test(peer_devices_access_each_others_memory),
		cmocka_unit_test(registering_code_again_resets_its_variables),
		cmocka_unit_test(uses_and_keeps_a_context_that_the_program_made_current),
		cmocka_unit_test(several_threads_may_make_the_first_call_at_once),
		cmocka_unit_test(a_reset_affects_the_other_threads),
		cmocka_unit_test(a_reset_clears_a_fault),
		cmocka_unit_test(a_fault_is_printed_once),
	};

	setenv("GPULOAD_SOFT_DEVICES", "2", 1);
	setenv("GPULOAD_DRIVER", "soft", 1);
	return cmocka_run_group_tests_name("runtime on the software driver", tests, NULL, NULL);
}
