/* kernel_names.c — a hash table with the keys (process, handle), filled from these calls:
 *
 *     cuModuleGetFunction(*hfunc, module, name)    name becomes the name of hfunc; also cuLibraryGetKernel, cudaLibraryGetKernel
 *     cuKernelGetFunction(*pFunc, kernel)          pFunc gets the name of kernel; also cudaGetFuncBySymbol, cudaGetKernel
 *     cuFuncGetName(*name, hfunc)                  name becomes the name of hfunc
 *     __cudaRegisterFunction(_, hostFun, _, name)  name becomes the name of hostFun, nvcc's host function, also after fork() */
#include "cli/calls/log/kernel_names.h"

#include <stdlib.h>
#include <string.h>

#include "core/demangle.h"

enum { ANY_PROCESS = 0 };

static size_t place_of(const struct kernel_names *names, int pid, uint64_t handle)
{
	size_t i = (size_t)((handle ^ ((uint64_t)(uint32_t)pid << 40)) * 0x9e3779b97f4a7c15u >> 20) & (names->room - 1);

	while (names->at[i].name && (names->at[i].handle != handle || names->at[i].pid != pid))
		i = (i + 1) & (names->room - 1);
	return i;
}

static bool make_room(struct kernel_names *names)
{
	struct kernel_names larger = { .n = names->n, .room = names->room ? 2 * names->room : 256 };

	if (2 * names->n < names->room)
		return true;
	larger.at = calloc(larger.room, sizeof *larger.at);
	if (!larger.at)
		return false;
	for (size_t i = 0; i < names->room; i++)
		if (names->at[i].name)
			larger.at[place_of(&larger, names->at[i].pid, names->at[i].handle)] = names->at[i];
	free(names->at);
	*names = larger;
	return true;
}

/* Set the name of a handle; takes ownership of name, which may be NULL. */
static void set_name(struct kernel_names *names, int pid, uint64_t handle, char *name)
{
	struct kernel_name *k;

	if (!name || !handle || !make_room(names)) {
		free(name);
		return;
	}
	k = &names->at[place_of(names, pid, handle)];
	names->n += !k->name;
	free(k->name);
	*k = (struct kernel_name){ handle, pid, name };
}

static const char *find_name(const struct kernel_names *names, int pid, uint64_t handle)
{
	return names->room ? names->at[place_of(names, pid, handle)].name : NULL;
}

const char *kernel_name(const struct kernel_names *names, int pid, uint64_t handle)
{
	const char *name = handle ? find_name(names, pid, handle) : NULL;

	return name || !handle ? name : find_name(names, ANY_PROCESS, handle);
}

static char *readable_name(struct calls_piece p)
{
	char *name = strndup((const char *)p.bytes, p.n_bytes), *demangled = name ? gpul_demangle(name) : NULL;

	if (!demangled)
		return name;
	free(name);
	return demangled;
}

void kernel_names_learn(struct kernel_names *names, const struct calls_event *e)
{
	uint64_t handle = e->row->n_words > 1 ? e->words[1] : 0;
	const char *known = kernel_name(names, e->pid, handle);
	char *name = NULL;

	if (!e->finished || (e->row->result && (uint32_t)e->result))
		return;
	for (size_t i = 0; i < e->row->n_params; i++) {
		const struct calls_piece p = calls_piece_of(e, i);
		const enum calls_capture capture = e->row->params[i].capture;

		if (p.absent)
			continue;
		if ((capture == CALLS_TEXT_IN || capture == CALLS_TEXT_POINTER) && !name)
			name = readable_name(p);
		else if (capture == CALLS_OUT && i == 0 && p.n_bytes == sizeof handle)
			memcpy(&handle, p.bytes, sizeof handle);
	}
	if (!name && known)
		name = strdup(known);
	set_name(names, e->row->result ? e->pid : ANY_PROCESS, handle, name);
}

void kernel_names_free(struct kernel_names *names)
{
	for (size_t i = 0; i < names->room; i++)
		free(names->at[i].name);
	free(names->at);
	*names = (struct kernel_names){ 0 };
}
