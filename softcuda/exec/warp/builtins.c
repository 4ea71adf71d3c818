/* builtins.c — functions that PTX code calls and the driver must provide: vprintf, malloc, free, __assertfail, cudaGraphSetConditional.
 * The functions of the device runtime are in ../machine/device_runtime.c.
 *
 * Source of the signatures: CUDA C++ Programming Guide, formatted output and dynamic memory allocation, and the
 * declarations in nvcc's PTX. */
#include <stdio.h>

#include "softcuda/exec/warp/device_calls_internal.h"
#include "softcuda/exec/warp/warp_internal.h"

/* Find a function of the device runtime by name.  Returns -1 if no function has that name, -2 if the function is not supported.  In
 * PTX of CUDA 11 and older, the names lack the prefix __cudaCDP2. */
static int find_device_call(const char *name)
{
	static const char *const known[] = {
#define X(call, function, returns_error, written_bytes) #call,
		GPUL_DEVICE_CALLS(X)
#undef X
	};
	static const char *const refused[] = { "cudaDeviceSynchronize", "cudaMemcpy3DAsync", "cudaMemset3DAsync", "cudaGraphLaunch" };
	const bool marked = !strncmp(name, "__cudaCDP2", 10);
	const char *bare = marked ? name + 10 : !strncmp(name, "cuda", 4) ? name + 4 : "";

	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		if (!strcmp(bare, known[k]))
			return (int)k;
	for (size_t k = 0; k < sizeof refused / sizeof refused[0]; k++)
		if (!strcmp(name, refused[k]))
			return -2;
	return marked ? -2 : -1;
}

enum builtin gpul_builtin_find(const char *name)
{
	static const struct {
		const char *name;
		enum builtin builtin;
	} known[] = {
		{ "vprintf", BUILTIN_VPRINTF },
		{ "malloc", BUILTIN_MALLOC },
		{ "free", BUILTIN_FREE },
		{ "__assertfail", BUILTIN_ASSERTFAIL },
		{ "cudaGraphSetConditional", BUILTIN_SET_CONDITIONAL },
	};
	int call;

	for (size_t k = 0; k < sizeof known / sizeof known[0]; k++)
		if (!strcmp(name, known[k].name))
			return known[k].builtin;
	call = find_device_call(name);
	return call >= 0 ? (enum builtin)(BUILTIN_DEVICE_RUNTIME + call) : call == -2 ? BUILTIN_REFUSED : BUILTIN_NONE;
}

unsigned gpul_builtin_written_bytes(enum builtin b)
{
	static const uint8_t bytes[] = {
#define X(call, function, returns_error, written_bytes) written_bytes,
		GPUL_DEVICE_CALLS(X)
#undef X
	};

	return b < BUILTIN_DEVICE_RUNTIME ? 0 : bytes[b - BUILTIN_DEVICE_RUNTIME];
}

uint64_t gpul_builtin_argument(const struct warp_state *s, const struct call_site *site, uint32_t n, unsigned lane)
{
	const struct call_argument *a = &site->args[n];
	uint32_t bytes = a->slot.bytes < 8 ? a->slot.bytes : 8;
	uint64_t value = 0;

	if (n >= site->n_args + site->n_rets)
		return 0;
	if (a->in_register)
		memcpy(&value, (uint8_t *)opptr(&s->w, a->regs.at[0]) + lane * a->slot.bytes, bytes);
	else
		memcpy(&value, s->local + lane * s->local_stride + s->frame->local_offset + a->slot.offset, bytes);
	return value;
}

void gpul_builtin_bytes(const struct warp_state *s, const struct call_site *site, uint32_t n, unsigned lane, void *out, size_t bytes)
{
	const struct call_argument *a = &site->args[n];

	memset(out, 0, bytes);
	if (n >= site->n_args)
		return;
	if (bytes > a->slot.bytes)
		bytes = a->slot.bytes;
	if (a->in_register)
		memcpy(out, (uint8_t *)opptr(&s->w, a->regs.at[0]) + lane * a->slot.bytes, bytes);
	else
		memcpy(out, s->local + lane * s->local_stride + s->frame->local_offset + a->slot.offset, bytes);
}

uint64_t gpul_builtin_result(const struct warp_state *s, const struct call_site *site, unsigned lane)
{
	return site->n_rets ? gpul_builtin_argument(s, site, site->n_args, lane) : 0;
}

void gpul_builtin_set_result(const struct warp_state *s, const struct call_site *site, unsigned lane, uint64_t value)
{
	const struct call_argument *a = &site->args[site->n_args];
	uint32_t bytes = a->slot.bytes < 8 ? a->slot.bytes : 8;

	if (!site->n_rets)
		return;
	if (a->in_register)
		memcpy((uint8_t *)opptr(&s->w, a->regs.at[0]) + lane * a->slot.bytes, &value, bytes);
	else
		memcpy(s->local + lane * s->local_stride + s->frame->local_offset + a->slot.offset, &value, bytes);
}

static const struct insn *fail_assertion(struct warp_state *s, const struct insn *i, unsigned lane)
{
	const struct call_site *site = i->object;
	char message[100] = "?", file[60] = "?", function[60] = "?";

	gpul_lane_string(s, lane, gpul_builtin_argument(s, site, 0, lane), message, sizeof message);
	gpul_lane_string(s, lane, gpul_builtin_argument(s, site, 1, lane), file, sizeof file);
	gpul_lane_string(s, lane, gpul_builtin_argument(s, site, 3, lane), function, sizeof function);
	return gpul_fault_text(s, i, GPUL_EXEC_ASSERT, lane, "%s:%u: %s: assertion `%s' failed", file,
			       (unsigned)gpul_builtin_argument(s, site, 2, lane), function, message);
}

static const struct insn *device_free(struct warp_state *s, const struct insn *i, unsigned lane)
{
	uint64_t address = gpul_builtin_argument(s, i->object, 0, lane);
	struct heap *heap = gpul_heap_of(s->block->launch->machine);

	if (!address || (heap && gpul_heap_free(heap, address)))
		return NULL;
	return gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane,
			       "free of 0x%llx, which malloc did not return or which was freed before", (unsigned long long)address);
}

/* Set the value of a conditional graph node.  Its handle is the address of the value: see GPUL_EXEC_MEM_CONDITION. */
static const struct insn *set_conditional(struct warp_state *s, const struct insn *i, unsigned lane)
{
	uint64_t handle = gpul_builtin_argument(s, i->object, 0, lane);
	gpul_exec_range range;

	if (!gpul_exec_memory_find(s->block->launch->machine->memory, handle, &range) || range.base != handle ||
	    !(range.flags & GPUL_EXEC_MEM_CONDITION))
		return gpul_fault_text(s, i, GPUL_EXEC_ILLEGAL_ADDRESS, lane,
				       "cudaGraphSetConditional: 0x%llx is not a conditional handle, or its graph was destroyed",
				       (unsigned long long)handle);
	__atomic_store_n((uint32_t *)(uintptr_t)handle, (uint32_t)gpul_builtin_argument(s, i->object, 1, lane), __ATOMIC_RELAXED);
	return NULL;
}

const struct insn *gpul_call_builtin(struct warp_state *s, const struct insn *i)
{
	const struct call_site *site = i->object;

	if (site->builtin >= BUILTIN_DEVICE_RUNTIME)
		return s->block->launch->machine->nests->call_device_runtime(s, i);
	EACH_ACTIVE(l, &s->w)
	{
		const struct insn *stop = NULL;
		struct heap *heap;

		switch (site->builtin) {
		case BUILTIN_VPRINTF:
			gpul_builtin_set_result(s, site, l,
						(uint64_t)(int64_t)gpul_lane_printf(s, i, l, gpul_builtin_argument(s, site, 0, l),
										    gpul_builtin_argument(s, site, 1, l), &stop));
			break;
		case BUILTIN_MALLOC:
			heap = gpul_heap_of(s->block->launch->machine);
			gpul_builtin_set_result(s, site, l, heap ? gpul_heap_alloc(heap, gpul_builtin_argument(s, site, 0, l)) : 0);
			break;
		case BUILTIN_FREE:
			stop = device_free(s, i, l);
			break;
		case BUILTIN_SET_CONDITIONAL:
			stop = set_conditional(s, i, l);
			break;
		default:
			stop = fail_assertion(s, i, l);
			break;
		}
		if (stop)
			return stop;
	}
	return i + 1;
}
