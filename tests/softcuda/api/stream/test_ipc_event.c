/* test_ipc_event.c — events that one process records and another waits for. */
#include "tests/softcuda/api/pair.h"
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FLAGS = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING };

static CUevent make_event(int peer)
{
	CUipcEventHandle h;
	CUevent event;

	must_ok(cuEventCreate(&event, FLAGS));
	must_ok(cuIpcGetEventHandle(&h, event));
	send_bytes(peer, &h, sizeof h);
	return event;
}

static CUevent receive_event(int peer)
{
	CUipcEventHandle h;
	CUevent event;

	receive_bytes(peer, &h, sizeof h);
	must_ok(cuIpcOpenEventHandle(&event, h));
	return event;
}

/* Start a kernel that waits for the flag, on a new stream. */
static CUstream start_spinning(uint32_t *flag)
{
	static CUdeviceptr seen;
	CUstream stream;

	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must_ok(cuMemAlloc(&seen, 4));
	launch(get_kernel("spin"), 1, 1, stream, (void *[]){ &flag, &seen });
	return stream;
}

/* ---- each process records the event, and waits for it ------------------------------------ */

static void first_recorder(int peer)
{
	CUcontext ctx = init_process(0);
	CUevent event = make_event(peer);
	uint32_t *flag = make_flag();
	CUstream stream = start_spinning(flag);

	must_ok(cuEventQuery(event)); /* complete, because the event was never recorded */
	must_ok(cuEventRecord(event, stream));
	must_be(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	pass_turn(peer);
	await_turn(peer);
	raise_flag(flag);
	must_ok(cuEventSynchronize(event));
	await_turn(peer); /* meanwhile the other process records the event */
	must_be(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	pass_turn(peer);
	must_ok(cuEventSynchronize(event));
	must_ok(cuEventQuery(event));
	if (on_software_driver()) /* NVIDIA does not define this case */
		must_ok(cuEventDestroy(event));
	pass_turn(peer);
	await_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void second_recorder(int peer)
{
	CUcontext ctx = init_process(0);
	CUevent event = receive_event(peer);
	uint32_t *flag;
	CUstream stream;

	await_turn(peer);
	must_be(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	pass_turn(peer);
	must_ok(cuEventSynchronize(event));
	must_ok(cuEventQuery(event));
	flag = make_flag();
	stream = start_spinning(flag);
	must_ok(cuEventRecord(event, stream));
	must_be(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	pass_turn(peer);
	await_turn(peer);
	raise_flag(flag);
	must_ok(cuEventSynchronize(event));
	await_turn(peer); /* the other process has destroyed its event; the one opened here is still valid */
	must_ok(cuEventRecord(event, NULL));
	must_ok(cuEventSynchronize(event));
	must_ok(cuEventDestroy(event));
	pass_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void each_process_can_record_and_wait(void **state)
{
	(void)state;
	run_pair(first_recorder, second_recorder);
}

/* ---- streams that wait for another process ---------------------------------------------- */

static void producer(int peer)
{
	CUcontext ctx = init_process(0);
	CUdeviceptr word;
	CUipcMemHandle h;
	uint32_t *flag = make_flag();
	unsigned value = 41;
	CUevent event;
	CUstream stream;
	CUfunction put = get_kernel("put"); /* load now, because loading may wait for running kernels */

	must_ok(cuMemAlloc(&word, 4));
	must_ok(cuMemsetD32(word, 0, 1));
	stream = start_spinning(flag);
	launch(put, 1, 1, stream, (void *[]){ &word, &value });
	must_ok(cuEventCreate(&event, FLAGS));
	must_ok(cuEventRecord(event, stream)); /* the recorded work is still pending when the event is first shared */
	CUipcEventHandle e;

	must_ok(cuIpcGetEventHandle(&e, event));
	send_bytes(peer, &e, sizeof e);
	must_ok(cuIpcGetMemHandle(&h, word));
	send_bytes(peer, &h, sizeof h);
	await_turn(peer);
	raise_flag(flag);
	await_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void consumer(int peer)
{
	CUcontext ctx = init_process(0);
	CUevent event = receive_event(peer);
	CUipcMemHandle h;
	CUdeviceptr word, copy;
	CUstream stream;
	unsigned got = 0;

	receive_bytes(peer, &h, sizeof h);
	must_ok(cuIpcOpenMemHandle(&word, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	must_ok(cuMemAlloc(&copy, 4));
	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must_ok(cuStreamWaitEvent(stream, event, 0));
	must_ok(cuMemcpyDtoDAsync(copy, word, 4, stream));
	must_be(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	pass_turn(peer);
	must_ok(cuStreamSynchronize(stream));
	must_ok(cuMemcpyDtoH(&got, copy, 4));
	must(got == 41);
	must_ok(cuStreamWaitEvent(stream, event, 0)); /* the recorded work is complete, so there is nothing to wait for */
	must_ok(cuStreamSynchronize(stream));
	pass_turn(peer);
	must_ok(cuCtxDestroy(ctx));
}

static void a_stream_waits_for_another_process(void **state)
{
	(void)state;
	run_pair(producer, consumer);
}

/* Destroy a context while one of its streams waits for another process. */
static void slow_producer(int peer)
{
	init_process(0);
	CUevent event = make_event(peer);
	uint32_t *flag = make_flag();

	must_ok(cuEventRecord(event, start_spinning(flag)));
	pass_turn(peer);
	await_turn(peer);
	raise_flag(flag);
	must_ok(cuCtxSynchronize());
}

static void impatient_consumer(int peer)
{
	CUcontext ctx = init_process(0);
	CUevent event = receive_event(peer);
	CUstream stream;

	await_turn(peer);
	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must_ok(cuStreamWaitEvent(stream, event, 0));
	must_be(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	must_ok(cuCtxDestroy(ctx));
	pass_turn(peer);
}

static void a_context_can_be_destroyed_while_its_stream_waits(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip(); /* because cuCtxDestroy of NVIDIA's driver waits for the event */
	run_pair(slow_producer, impatient_consumer);
}

/* ---- recording processes that end ------------------------------------------------------------------ */

static void recorder_that_dies(int peer)
{
	uint32_t *flag;

	init_process(0);
	flag = make_flag();
	must_ok(cuEventRecord(make_event(peer), start_spinning(flag)));
	pass_turn(peer);
	await_turn(peer);
	kill(getpid(), SIGKILL);
}

static void waiter_that_is_released(int peer)
{
	CUevent event;
	CUstream stream;

	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	init_process(0);
	event = receive_event(peer);
	await_turn(peer);
	must_be(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	must_ok(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must_ok(cuStreamWaitEvent(stream, event, 0));
	pass_turn(peer);
	must_be(cuEventSynchronize(event), CUDA_ERROR_UNKNOWN);
	must_be(cuStreamSynchronize(stream), CUDA_ERROR_UNKNOWN);
	must_be(cuEventQuery(event), CUDA_ERROR_UNKNOWN);
}

static void waiters_are_released_when_the_recording_process_is_killed(void **state)
{
	pid_t recorder, waiter;
	int fd[2], status = 0;

	(void)state;
	if (!on_software_driver())
		skip(); /* NVIDIA does not document this case */
	make_sockets(fd);
	recorder = start_side(recorder_that_dies, fd[0], fd[1]);
	waiter = start_side(waiter_that_is_released, fd[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
	assert_int_equal(waitpid(recorder, &status, 0), recorder);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end_side(waiter);
}

/* The work that the event records faults, so processes that wait for the event must get an error. */
static void recorder_that_faults(int peer)
{
	CUdeviceptr nowhere = 0x1000;
	unsigned value = 1;
	uint32_t *flag;
	CUstream stream;
	CUevent event;

	setenv("GPULOAD_SOFT_QUIET", "1", 1);
	init_process(0);
	flag = make_flag();
	event = make_event(peer);
	stream = start_spinning(flag);
	launch(get_kernel("put"), 1, 1, stream, (void *[]){ &nowhere, &value });
	must_ok(cuEventRecord(event, stream));
	pass_turn(peer);
	raise_flag(flag);
	await_turn(peer);
}

static void waiter_for_a_fault(int peer)
{
	CUevent event;

	init_process(0);
	event = receive_event(peer);
	await_turn(peer);
	must_be(cuEventSynchronize(event), CUDA_ERROR_UNKNOWN);
	pass_turn(peer);
}

static void a_fault_before_the_record_is_an_error_for_the_waiters(void **state)
{
	(void)state;
	if (!on_software_driver())
		skip();
	run_pair(recorder_that_faults, waiter_for_a_fault);
}

/* ---- handles of events ------------------------------------------------------------------ */

static void maker_of_handles(int peer)
{
	CUcontext ctx = init_process(0);
	CUevent plain, event, other;
	CUipcEventHandle h;

	must_be(cuEventCreate(&plain, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
	must_ok(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
	must_be(cuIpcGetEventHandle(&h, plain), CUDA_ERROR_INVALID_HANDLE);
	must_ok(cuEventCreate(&event, FLAGS));
	must_ok(cuIpcGetEventHandle(&h, event));
	must_be(cuIpcOpenEventHandle(&other, h), CUDA_ERROR_INVALID_CONTEXT);
	send_bytes(peer, &h, sizeof h);
	await_turn(peer);
	must_ok(cuCtxDestroy(ctx));
	pass_turn(peer);
}

static void opener_of_handles(int peer)
{
	CUcontext ctx = init_process(0);
	CUipcEventHandle h, made;
	CUevent event, again;
	int before = open_descriptors();

	receive_bytes(peer, &h, sizeof h);
	must_ok(cuIpcOpenEventHandle(&event, h));
	must_ok(cuIpcOpenEventHandle(&again, h));
	must(event != again);
	must_ok(cuEventRecord(again, NULL));
	must_ok(cuEventSynchronize(event));
	must_be(cuIpcGetEventHandle(&made, event), CUDA_ERROR_INVALID_HANDLE);
	must_ok(cuEventDestroy(event));
	must_ok(cuEventDestroy(again));
	memset(&made, 0x5a, sizeof made);
	must_be(cuIpcOpenEventHandle(&event, made), CUDA_ERROR_MAP_FAILED);
	if (on_software_driver())
		must(open_descriptors() == before);
	pass_turn(peer);
	await_turn(peer);
	if (on_software_driver()) /* the event was destroyed with its context; on NVIDIA's driver it still exists */
		must(cuIpcOpenEventHandle(&event, h) != CUDA_SUCCESS);
	must_ok(cuCtxDestroy(ctx));
}

static void refuses_invalid_event_handles(void **state)
{
	(void)state;
	run_pair(maker_of_handles, opener_of_handles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_process_can_record_and_wait),
		cmocka_unit_test(a_stream_waits_for_another_process),
		cmocka_unit_test(a_context_can_be_destroyed_while_its_stream_waits),
		cmocka_unit_test(waiters_are_released_when_the_recording_process_is_killed),
		cmocka_unit_test(a_fault_before_the_record_is_an_error_for_the_waiters),
		cmocka_unit_test(refuses_invalid_event_handles),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
