/* test_ipc_kill.c — kills the owner or the importer of shared memory at random moments.  The other process must see correct
 * bytes or an error, and leaks nothing.
 *
 * GPULOAD_KILLS=N: how often each of the two is killed (default 10). */
#include "tests/softcuda/api/pair.h"
#include "tests/softcuda/api/support.h"

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct offer {
	CUipcMemHandle memory;
	CUipcEventHandle ready;
	unsigned value, n_words;
};

static int n_kills(void)
{
	const char *text = getenv("GPULOAD_KILLS");

	return text ? atoi(text) : 10;
}

static bool send_all(int peer, const void *bytes, size_t n)
{
	return send(peer, bytes, n, MSG_NOSIGNAL) == (ssize_t)n;
}

static bool receive_all(int peer, void *bytes, size_t n)
{
	return recv(peer, bytes, n, MSG_WAITALL) == (ssize_t)n;
}

/* Share a new allocation with the importer, and free it when the importer has replied.  Returns false if the importer has ended. */
static bool offer_once(int peer, unsigned round, CUevent event)
{
	struct offer o = { .value = round, .n_words = 1 + round * 977 % 40000 };
	CUdeviceptr p;
	char turn;
	bool taken;

	must_ok(cuMemAlloc(&p, 4 * (size_t)o.n_words));
	must_ok(cuIpcGetMemHandle(&o.memory, p));
	must_ok(cuMemsetD32Async(p, o.value, o.n_words, NULL));
	must_ok(cuEventRecord(event, NULL));
	must_ok(cuIpcGetEventHandle(&o.ready, event));
	taken = send_all(peer, &o, sizeof o) && receive_all(peer, &turn, 1);
	must_ok(cuMemFree(p));
	return taken;
}

static void must_be_clean(int descriptors)
{
	must(open_descriptors() == descriptors);
	must(!has_line("/proc/self/maps", "gpuload-ipc"));
}

static void offerer(int peer)
{
	CUcontext ctx = init_process(0);
	int before = open_descriptors();
	CUevent event;

	must_ok(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	for (unsigned round = 1; offer_once(peer, round, event);)
		round++;
	must_ok(cuEventDestroy(event));
	must_be_clean(before);
	must_ok(cuCtxDestroy(ctx));
}

/* Import and check one allocation.  False: the owner was killed; any other error fails the test. */
static bool take_once(const struct offer *o, unsigned *words)
{
	CUdeviceptr p;
	CUevent ready;
	bool right = true;

	if (cuIpcOpenMemHandle(&p, o->memory, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
		return false;
	right = cuIpcOpenEventHandle(&ready, o->ready) == CUDA_SUCCESS;
	if (right) {
		right = cuEventSynchronize(ready) == CUDA_SUCCESS;
		must_ok(cuEventDestroy(ready));
	}
	must_ok(cuMemcpyDtoH(words, p, 4 * (size_t)o->n_words));
	for (unsigned i = 0; right && i < o->n_words; i++)
		must(words[i] == o->value);
	must_ok(cuIpcCloseMemHandle(p));
	return right;
}

static void taker(int peer)
{
	CUcontext ctx = init_process(0);
	int before = open_descriptors();
	unsigned *words = malloc(4 * 40001);
	struct offer o;
	char turn;

	must(words != NULL);
	while (receive_all(peer, &o, sizeof o)) {
		if (!take_once(&o, words)) {
			must(recv(peer, &turn, 1, 0) <= 0); /* the owner was killed */
			break;
		}
		if (!send_all(peer, "t", 1))
			break;
	}
	free(words);
	must_be_clean(before);
	must_ok(cuCtxDestroy(ctx));
}

/* Start both processes, let them run for a time that differs in each round, and kill one of them. */
static void kill_one(int which, unsigned round)
{
	int fd[2], status = 0;
	pid_t sides[2];

	make_sockets(fd);
	sides[0] = start_side(offerer, fd[0], fd[1]);
	sides[1] = start_side(taker, fd[1], fd[0]);
	close(fd[0]);
	close(fd[1]);
	usleep(4000 + round * 7919 % 20000);
	kill(sides[which], SIGKILL);
	assert_int_equal(waitpid(sides[which], &status, 0), sides[which]);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	end_side(sides[!which]);
}

static void the_importer_survives_a_killed_owner(void **state)
{
	(void)state;
	for (int n = 0; n < n_kills(); n++)
		kill_one(0, (unsigned)n);
}

static void the_owner_survives_a_killed_importer(void **state)
{
	(void)state;
	for (int n = 0; n < n_kills(); n++)
		kill_one(1, (unsigned)n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_importer_survives_a_killed_owner),
		cmocka_unit_test(the_owner_survives_a_killed_importer),
	};

	if (!on_software_driver())
		return 77; /* NVIDIA does not define this case */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
