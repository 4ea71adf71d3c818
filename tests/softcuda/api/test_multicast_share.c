/* test_multicast_share.c — a multicast object of two processes: each binds the memory of its own device.
 *
 * Never run this test on NVIDIA's driver, whose multicast objects use the NVLink switch that all GPUs of the machine share. */
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/softcuda/api/pair.h"

enum { M2 = 2 << 20 };
#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static const char ptx[] =
	".version 9.0\n.target sm_90\n.address_size 64\n"
	".visible .entry sum(.param .u64 x, .param .u64 out) { .reg .b64 %d<3>; .reg .b32 %r;\n"
	"ld.param.u64 %d1, [x]; ld.param.u64 %d2, [out]; multimem.ld_reduce.relaxed.sys.global.add.u32 %r, [%d1]; st.global.u32 [%d2], %r; ret; }\n"
	".visible .entry set(.param .u64 x, .param .u64 second) { .reg .b64 %d;\n"
	"ld.param.u64 %d, [x]; st.global.u32 [%d+128], 7; multimem.red.relaxed.sys.global.add.u32 [%d+128], 1; ret; }\n"
	".visible .entry count(.param .u64 x, .param .u64 own) { .reg .b64 %d<3>; .reg .b32 %r; .reg .pred %p;\n"
	"ld.param.u64 %d1, [x]; ld.param.u64 %d2, [own]; multimem.red.release.sys.global.add.u32 [%d1], 1;\n"
	"again: ld.acquire.sys.global.u32 %r, [%d2]; setp.lt.u32 %p, %r, 2; @%p bra again; ret; }\n";

/* ---- sending a file descriptor to the other process ------------------------------------------ */

static void send_descriptor(int peer, int fd)
{
	char byte = 0, room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(c), &fd, sizeof fd);
	must(sendmsg(peer, &m, 0) == 1);
}

static int receive_descriptor(int peer)
{
	char byte, room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec part = { &byte, 1 };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	int fd;

	must(recvmsg(peer, &m, 0) == 1 && CMSG_FIRSTHDR(&m));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

/* ---- functions for both processes ---------------------------------------------------------------- */

struct side {
	CUmemGenericAllocationHandle object, memory;
	CUdeviceptr own, multicast, out;
	CUmodule module;
};

static CUdeviceptr map(CUmemGenericAllocationHandle h, int device)
{
	const CUmemAccessDesc to = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device },
				     .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr p;

	must_ok(cuMemAddressReserve(&p, M2, 0, 0, 0));
	must_ok(cuMemMap(p, M2, 0, h, 0));
	must_ok(cuMemSetAccess(p, M2, &to, 1));
	return p;
}

/* Add the device to the multicast object, and create memory of the device that begins with the value. */
static struct side enter_device(CUmemGenericAllocationHandle object, int device, unsigned value)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .requestedHandleTypes = FD,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device } };
	struct side s = { .object = object };

	must_ok(cuMulticastAddDevice(object, device));
	must_ok(cuMemCreate(&s.memory, M2, &prop, 0));
	s.own = map(s.memory, device);
	must_ok(cuMemsetD32(s.own, value, 1));
	must_ok(cuMemsetD32(s.own + 64, 0, 1));
	must_ok(cuCtxSynchronize());
	return s;
}

/* Add the device, wait for the other device, bind memory that begins with the value, and map the object. */
static struct side join_team(CUmemGenericAllocationHandle object, int device, unsigned value)
{
	struct side s = enter_device(object, device, value);

	must_ok(cuMulticastBindMem(object, 0, s.memory, 0, M2, 0)); /* waits until both devices were added */
	s.multicast = map(object, device);
	must_ok(cuMemAlloc(&s.out, 4));
	must_ok(cuModuleLoadData(&s.module, ptx));
	return s;
}

static CUresult run(const struct side *s, const char *name, CUdeviceptr x, CUdeviceptr second)
{
	CUfunction f;

	must_ok(cuModuleGetFunction(&f, s->module, name));
	must_ok(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &x, &second }, NULL));
	return cuCtxSynchronize();
}

static unsigned word_at(CUdeviceptr p)
{
	unsigned word = 0;

	must_ok(cuMemcpyDtoH(&word, p, 4));
	return word;
}

static CUmemGenericAllocationHandle offer_object(int peer)
{
	CUmemGenericAllocationHandle object;
	int fd;

	must_ok(cuMulticastCreate(&object, &(CUmulticastObjectProp){ .numDevices = 2, .size = M2, .handleTypes = FD }));
	must_ok(cuMemExportToShareableHandle(&fd, object, FD, 0));
	send_descriptor(peer, fd);
	close(fd);
	return object;
}

static CUmemGenericAllocationHandle import_object(int peer)
{
	const int fd = receive_descriptor(peer);
	CUmemGenericAllocationHandle object;

	must_ok(cuMemImportFromShareableHandle(&object, (void *)(intptr_t)fd, FD));
	close(fd);
	return object;
}

/* ---- tests ----------------------------------------------------------------------------------------- */

static void use_team(int peer, struct side s, bool last)
{
	pass_turn(peer);
	await_turn(peer); /* now both processes have bound their memory */
	must_ok(run(&s, "sum", s.multicast, s.out));
	must(word_at(s.out) == 30);
	must_ok(run(&s, "count", s.multicast + 64, s.own + 64)); /* both kernels count to 2, as in a barrier */
	must(word_at(s.own + 64) == 2);
	pass_turn(peer);
	await_turn(peer);
	must_ok(cuMulticastUnbind(s.object, last, 0, M2));
	pass_turn(peer);
	await_turn(peer);
	must_be(run(&s, "sum", s.multicast, s.out), CUDA_ERROR_ILLEGAL_ADDRESS);
	must_ok(cuMemUnmap(s.multicast, M2));
	must_ok(cuMemRelease(s.object));
}

static void own_team(int peer)
{
	init_process(0);
	use_team(peer, join_team(offer_object(peer), 0, 10), false);
}

static void enter_team(int peer)
{
	init_process(1);
	use_team(peer, join_team(import_object(peer), 1, 20), true);
}

static void two_processes_reduce_and_count(void **state)
{
	(void)state;
	run_pair(own_team, enter_team);
}

/* Load from and store to the memory of the other process, which has ended. */
static void use_memory_of_the_dead(const struct side *s)
{
	must_ok(run(s, "sum", s->multicast, s->out));
	must(word_at(s->out) == 3);
	must_ok(run(s, "set", s->multicast, s->out));
	must(word_at(s->own + 128) == 8);
	must_ok(run(s, "sum", s->multicast + 128, s->out));
	must(word_at(s->out) == 16);
}

static void await_the_end(int peer)
{
	char byte;

	pass_turn(peer);
	must(read(peer, &byte, 1) == 0);
}

static void own_and_reduce(int peer)
{
	struct side s;

	init_process(0);
	s = join_team(offer_object(peer), 0, 1);
	await_turn(peer);
	must_ok(run(&s, "sum", s.multicast, s.out));
	must(word_at(s.out) == 3);
	await_the_end(peer);
	use_memory_of_the_dead(&s);
}

static void leave_early(int peer)
{
	init_process(1);
	(void)join_team(import_object(peer), 1, 2);
	pass_turn(peer);
	await_turn(peer);
	_exit(0);
}

static void memory_that_a_kernel_has_used_stays_after_its_process_has_ended(void **state)
{
	(void)state;
	run_pair(own_and_reduce, leave_early);
}

static void own_and_copy(int peer)
{
	struct side s;

	init_process(0);
	s = join_team(offer_object(peer), 0, 1);
	await_turn(peer);
	must_ok(cuMemsetD32(s.out, 0, 1));
	await_the_end(peer);
	use_memory_of_the_dead(&s);
}

/* The memset does not access the multicast object, but the driver keeps memory that was bound before any operation. */
static void memory_bound_before_some_work_stays_after_its_process_has_ended(void **state)
{
	(void)state;
	run_pair(own_and_copy, leave_early);
}

static void own_and_give_access(int peer)
{
	CUmemGenericAllocationHandle object;
	struct side s;

	init_process(0);
	object = offer_object(peer);
	s = enter_device(object, 0, 1);
	await_turn(peer);
	must_ok(cuMulticastBindMem(object, 0, s.memory, 0, M2, 0));
	s.multicast = map(object, 0);
	await_the_end(peer);
	must_ok(cuMemAlloc(&s.out, 4));
	must_ok(cuModuleLoadData(&s.module, ptx));
	use_memory_of_the_dead(&s);
}

static void memory_bound_before_access_is_given_stays_after_its_process_has_ended(void **state)
{
	(void)state;
	run_pair(own_and_give_access, leave_early);
}

static void own_with_a_dead_peer(int peer)
{
	struct side s;

	init_process(0);
	s = join_team(offer_object(peer), 0, 1);
	await_the_end(peer);
	must_ok(run(&s, "set", s.multicast, s.out));
	must(word_at(s.own + 128) == 8);
	must_be(run(&s, "sum", s.multicast, s.out), CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void bind_and_leave(int peer)
{
	CUmemGenericAllocationHandle object;
	struct side s;

	init_process(1);
	object = import_object(peer);
	s = enter_device(object, 1, 2);
	await_turn(peer);
	must_ok(cuMulticastBindMem(object, 0, s.memory, 0, M2, 0));
	_exit(0);
}

/* The other process ends immediately after it has bound its memory. */
static void stores_reach_the_other_devices_and_loads_fault_if_memory_is_gone(void **state)
{
	(void)state;
	run_pair(own_with_a_dead_peer, bind_and_leave);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_reduce_and_count),
		cmocka_unit_test(memory_that_a_kernel_has_used_stays_after_its_process_has_ended),
		cmocka_unit_test(memory_bound_before_some_work_stays_after_its_process_has_ended),
		cmocka_unit_test(memory_bound_before_access_is_given_stays_after_its_process_has_ended),
		cmocka_unit_test(stores_reach_the_other_devices_and_loads_fault_if_memory_is_gone),
	};

	setenv("GPULOAD_SOFT_DEVICES", "2", 1);
	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (!on_software_driver())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
