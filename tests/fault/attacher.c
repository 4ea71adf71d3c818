/* attacher.c — the actor that maps the owner's memory and executes commands. */
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "tests/fault/actors.h"
#include "tests/fault/count.h"
#include "tests/fault/process.h"

struct attacher {
	const struct actor *how;
	struct process process;
	gpul_ipc_client *client;
	int64_t rounds; /* number of rounds of the running kernel */
	bool has_baseline;
	struct counts baseline;
};

static gpul_status attach(struct attacher *a, int timeout_ms, gpul_error *err)
{
	int device = 0;
	gpul_ipc_client_options options = { .name = a->how->name ? a->how->name : SHARE_NAME, .devices = &device, .n_devices = 1 };
	gpul_status st = gpul_ipc_attach(&a->process.drv, &options, timeout_ms, &a->client, err);

	if (!st)
		step_reached("attached");
	return st;
}

static gpul_status start_kernel(struct attacher *a, int64_t rounds, gpul_error *err)
{
	gpul_status st = process_sum_start(&a->process, gpul_ipc_client_view(a->client), rounds, err);

	a->rounds = rounds;
	step_reached("a kernel runs");
	return st;
}

static gpul_status finish_kernel(struct attacher *a, gpul_error *err)
{
	gpul_status st = process_sum_end(&a->process, gpul_ipc_client_view(a->client), a->rounds, err);

	step_reached("summed");
	return st;
}

static gpul_status detach(struct attacher *a, gpul_error *err)
{
	gpul_status st = gpul_ipc_client_close(a->client, FAULT_WAIT_MS, err);

	a->client = NULL;
	step_reached("closed");
	return st;
}

static gpul_status listen_to_owner(struct attacher *a, int timeout_ms, struct note *n, gpul_error *err)
{
	gpul_ipc_event event = { 0 };
	gpul_status st = gpul_ipc_client_next(a->client, timeout_ms, &event, err);

	n->event = (int)event.kind;
	return st;
}

/* Repeatedly attach, check one word (each time another word), and detach. */
static gpul_status attach_repeatedly(struct attacher *a, int64_t times, gpul_error *err)
{
	gpul_status st = GPUL_OK;

	for (uint32_t i = 0; !st && i < times; i++) {
		const gpul_ipc_view *v;
		uint32_t word = 0, index = i * 31 % SHARED_WORDS;

		st = attach(a, FAULT_WAIT_MS, err);
		if (st)
			break;
		v = gpul_ipc_client_view(a->client);
		if (v->cpu)
			word = ((const volatile uint32_t *)v->cpu)[index];
		else
			st = gpul_cu(&a->process.drv, err, cuMemcpyDtoH(&word, v->gpu + 4 * index, sizeof word));
		if (!st && word != shared_word(index))
			st = gpul_fail(err, GPUL_EFORMAT, 0, "word %u is %#x", index, word);
		detach(a, st ? NULL : err);
	}
	return st;
}

static gpul_status query_owner(int timeout_ms, gpul_error *err)
{
	gpul_ipc_share share;

	return gpul_ipc_request(SHARE_NAME, timeout_ms, &share, err);
}

static gpul_status count_held(struct attacher *a, struct note *n)
{
	return a->has_baseline && !counts_same(&a->baseline, n->text) ? GPUL_EINVAL : GPUL_OK;
}

static void take_baseline(struct attacher *a)
{
	counts_take(&a->baseline);
	a->has_baseline = true;
}

/* Execute one command; false: the command was to exit. */
static bool execute_command(struct attacher *a, struct note *n)
{
	gpul_error err = { 0 };
	gpul_status st = GPUL_OK;
	uint64_t from = gpul_clock_ns();

	n->text[0] = '\0';
	switch (n->command) {
	case 'a':
		st = attach(a, (int)n->value, &err);
		break;
	case 'r':
		st = start_kernel(a, n->value, &err);
		break;
	case 'w':
		st = finish_kernel(a, &err);
		break;
	case 's':
		st = process_sums_right(&a->process, gpul_ipc_client_view(a->client), &err);
		break;
	case 'v':
		st = listen_to_owner(a, (int)n->value, n, &err);
		break;
	case 'x':
		st = detach(a, &err);
		break;
	case 'q':
		st = query_owner((int)n->value, &err);
		break;
	case 'm':
		st = attach_repeatedly(a, n->value, &err);
		break;
	case 'l':
		st = actor_limit(n->value) ? GPUL_OK : GPUL_ESYS;
		break;
	case 'b':
		take_baseline(a);
		break;
	case 'c':
		st = count_held(a, n);
		break;
	default:
		return false;
	}
	n->value = (int64_t)((gpul_clock_ns() - from) / 1000000);
	n->good = st == GPUL_OK;
	n->status = st;
	n->native = err.native;
	if (err.text[0])
		memcpy(n->text, err.text, sizeof err.text);
	return true;
}

int attacher_role(const struct fault *f, int line, const void *arg)
{
	struct attacher a = { .how = arg };
	struct note n;
	gpul_error err = { 0 };
	int status = actor_begin(arg);

	if (status >= 0)
		return status;
	if (process_open(f, &a.process, &err) || !actor_become(arg)) {
		n = (struct note){ .command = 'f' };
		memcpy(n.text, err.text, sizeof err.text);
		note_send(line, &n);
		return 1;
	}
	step_reached("open");
	while (note_receive(line, -1, &n) && execute_command(&a, &n))
		note_send(line, &n);
	gpul_ipc_client_close(a.client, FAULT_WAIT_MS, &err);
	process_close(&a.process);
	return 0;
}
