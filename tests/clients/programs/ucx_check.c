/* ucx_check.c — UCX between two processes with a GPU each: checks every byte of messages, puts and gets of CUDA memory.
 *
 * The processes exchange addresses through a socket.  The last line is "N passed, N failed". */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { MOST = (4 << 20) + 3 };
static const size_t sizes[] = { 1, 1000, 65536, 1 << 20, MOST };
enum kind { HOST, CUDA, MANAGED, N_KINDS };
static const char *const kinds[] = { "host", "cuda", "cuda-managed" };

static int me, peer; /* me: this process, 0 or 1; peer: socket to the other process */
static int passed, failed;
static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static unsigned char *buffer[N_KINDS], *plain;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	printf("FAILED process %d: %s\n", me, what);
	exit(1);
}
#define U(call) must((call) == UCS_OK, #call)
#define C(call) must((call) == cudaSuccess, #call)

/* ---- the socket ----------------------------------------------------------------------------- */

static void tell(const void *data, size_t n)
{
	must(write(peer, &n, sizeof n) == sizeof n && write(peer, data, n) == (ssize_t)n, "write to the other process");
}

static void *hear(void)
{
	size_t n;
	char *data;

	must(read(peer, &n, sizeof n) == sizeof n && (data = malloc(n)) && recv(peer, data, n, MSG_WAITALL) == (ssize_t)n,
	     "read from the other process");
	return data;
}

/* Wait for a message of the other process; meanwhile progress UCX, because the other process's transfer may need it. */
static void *hear_and_progress(void)
{
	char byte;

	while (recv(peer, &byte, 1, MSG_PEEK | MSG_DONTWAIT) <= 0)
		ucp_worker_progress(worker);
	return hear();
}

static void meet(void)
{
	tell("", 1);
	free(hear_and_progress());
}

/* ---- UCX ------------------------------------------------------------------------------------- */

static void open_ucx(void)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES, .features = UCP_FEATURE_TAG | UCP_FEATURE_RMA };
	ucp_worker_params_t worker_params = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE, .thread_mode = UCS_THREAD_MODE_SINGLE };
	ucp_ep_params_t ep_params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucp_address_t *address;
	size_t bytes;
	void *other;

	U(ucp_init(&params, NULL, &context));
	U(ucp_worker_create(context, &worker_params, &worker));
	U(ucp_worker_get_address(worker, &address, &bytes));
	tell(address, bytes);
	ucp_worker_release_address(worker, address);
	other = hear();
	ep_params.address = other;
	U(ucp_ep_create(worker, &ep_params, &ep));
	free(other);
}

static void finish(ucs_status_ptr_t request, const char *what)
{
	ucs_status_t status;

	must(!UCS_PTR_IS_ERR(request), what);
	if (!request)
		return;
	while ((status = ucp_request_check_status(request)) == UCS_INPROGRESS)
		ucp_worker_progress(worker);
	ucp_request_free(request);
	must(status == UCS_OK, what);
}

static void flush(void)
{
	const ucp_request_param_t none = { 0 };

	finish(ucp_ep_flush_nbx(ep, &none), "ucp_ep_flush_nbx");
}

/* ---- data -------------------------------------------------------------------------------------- */

static unsigned char value(size_t i, unsigned turn)
{
	return (unsigned char)(i * 7 + i / 251 + turn * 13 + 1);
}

static void fill(enum kind k, size_t n, unsigned turn)
{
	for (size_t i = 0; i < n; i++)
		plain[i] = value(i, turn);
	C(cudaMemcpy(buffer[k], plain, n, cudaMemcpyDefault));
}

static void clear(enum kind k)
{
	memset(plain, 0, MOST);
	C(cudaMemcpy(buffer[k], plain, MOST, cudaMemcpyDefault));
}

/* Check that the first n bytes of the buffer have arrived, and that byte n is unchanged. */
static void check(enum kind k, size_t n, unsigned turn, const char *what, enum kind from)
{
	size_t i = 0;

	C(cudaMemcpy(plain, buffer[k], MOST, cudaMemcpyDefault));
	while (i < n && plain[i] == value(i, turn))
		i++;
	if (i == n && (n == MOST || !plain[n])) {
		passed++;
		return;
	}
	printf("FAILED %s of %zu bytes from %s to %s: byte %zu is wrong\n", what, n, kinds[from], kinds[k], i);
	failed++;
}

static void make_buffers(void)
{
	C(cudaSetDevice(me));
	C(cudaMalloc((void **)&buffer[CUDA], MOST));
	C(cudaMallocManaged((void **)&buffer[MANAGED], MOST, cudaMemAttachGlobal));
	buffer[HOST] = malloc(MOST);
	plain = malloc(MOST);
	must(buffer[HOST] && plain, "malloc");
}

/* ---- tests ---------------------------------------------------------------------------------------- */

static void send_message(int sender, enum kind from, enum kind to, size_t n, unsigned turn)
{
	const ucp_request_param_t none = { 0 };

	if (me == sender) {
		fill(from, n, turn);
		finish(ucp_tag_send_nbx(ep, buffer[from], n, turn, &none), "ucp_tag_send_nbx");
	} else {
		clear(to);
		finish(ucp_tag_recv_nbx(worker, buffer[to], n, turn, ~(ucp_tag_t)0, &none), "ucp_tag_recv_nbx");
		check(to, n, turn, "message", from);
	}
	meet();
}

/* Process 0 puts n bytes into memory of process 1, or gets them from it. */
static void access_memory(int get, enum kind own, enum kind other, size_t n, unsigned turn)
{
	const ucp_request_param_t none = { 0 };
	const ucp_mem_map_params_t map = { .field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
					   .address = buffer[other],
					   .length = MOST };
	uint64_t *address;
	void *packed;
	size_t bytes;
	ucp_mem_h memory;
	ucp_rkey_h key;

	if (me) {
		if (get)
			fill(other, n, turn);
		else
			clear(other);
		U(ucp_mem_map(context, &map, &memory));
		U(ucp_rkey_pack(context, memory, &packed, &bytes));
		tell(&buffer[other], sizeof buffer[other]);
		tell(packed, bytes);
		ucp_rkey_buffer_release(packed);
		free(hear_and_progress());
		if (!get)
			check(other, n, turn, "put", own);
		U(ucp_mem_unmap(context, memory));
		return;
	}
	address = hear();
	packed = hear();
	U(ucp_ep_rkey_unpack(ep, packed, &key));
	if (get) {
		clear(own);
		finish(ucp_get_nbx(ep, buffer[own], n, *address, key, &none), "ucp_get_nbx");
	} else {
		fill(own, n, turn);
		finish(ucp_put_nbx(ep, buffer[own], n, *address, key, &none), "ucp_put_nbx");
	}
	flush();
	if (get)
		check(own, n, turn, "get", other);
	tell("", 1);
	ucp_rkey_destroy(key);
	free(address);
	free(packed);
}

static int run_process(void)
{
	unsigned turn = 0;

	make_buffers();
	open_ucx();
	for (int a = 0; a < N_KINDS; a++)
		for (int b = 0; b < N_KINDS; b++)
			for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
				for (int sender = 0; sender < 2; sender++)
					send_message(sender, (enum kind)a, (enum kind)b, sizes[s], ++turn);
				for (int get = 0; get < 2; get++)
					access_memory(get, (enum kind)a, (enum kind)b, sizes[s], ++turn);
			}
	meet();
	flush();
	meet();
	printf("process %d: %d passed, %d failed\n", me, passed, failed);
	fflush(stdout);
	_exit(failed != 0); /* no clean-up: UCX would wait for the other process, which ends now, too */
}

int main(void)
{
	int sockets[2], status, bad = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
		return 1;
	for (me = 0; me < 2; me++)
		if (!fork()) {
			peer = sockets[me];
			close(sockets[!me]);
			return run_process();
		}
	close(sockets[0]);
	close(sockets[1]);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("%d processes failed\n", bad);
	return bad != 0;
}
