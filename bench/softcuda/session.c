/* session.c — runs kernels in the software driver's interpreter without the CUDA API. */
#include "bench/softcuda/session.h"

#include <stdlib.h>
#include <string.h>

#include "core/file/file.h"
#include "softcuda/exec/observer_internal.h"
#include "softcuda/tools/start/start_internal.h"

static gpul_status load_program(struct session *s, const char *path)
{
	gpul_ptx_module *module;
	gpul_file file;

	if (gpul_file_open(path, &file, &s->err))
		return s->err.status;
	gpul_status st = gpul_ptx_parse(file.bytes, file.n_bytes, path, &module, &s->err);
	gpul_file_close(&file);
	return st ? st : gpul_exec_program_create(s->memory, module, path, &s->program, &s->err);
}

static _Bool open_in(struct session *s, gpul_exec_memory *memory, const char *ptx_path, const char *kernel, unsigned n_workers)
{
	gpul_exec_machine_options options = { .n_workers = n_workers };

	s->memory = memory;
	if (gpul_exec_machine_create(s->memory, &options, &s->machine, &s->err) || load_program(s, ptx_path))
		return 0;
	s->kernel = gpul_exec_find_kernel(s->program, kernel);
	if (!s->kernel)
		gpul_fail(&s->err, GPUL_EINVAL, 0, "%s: kernel %s not found", ptx_path, kernel);
	return s->kernel != NULL;
}

_Bool session_open(struct session *s, const char *ptx_path, const char *kernel, unsigned n_workers)
{
	gpul_exec_memory *memory;

	*s = (struct session){ 0 };
	return !gpul_exec_memory_create(&memory, &s->err) && open_in(s, memory, ptx_path, kernel, n_workers);
}

/* The memory table of all sessions that tools watch: it is shared, because a tool exists once and for the whole life of the process. */
static gpul_exec_memory *watched;

gpul_status session_start_tools(const char *tools, gpul_error *err)
{
	if (setenv("GPULOAD_SOFT_TOOLS", tools, 1))
		return gpul_fail(err, GPUL_ENOMEM, 0, "no memory for the tools");
	return gpul_exec_memory_create(&watched, err) || gpul_tools_start(watched, err) ? err->status : GPUL_OK;
}

_Bool session_open_watched(struct session *s, const char *ptx_path, const char *kernel, unsigned n_workers)
{
	*s = (struct session){ .watched = 1 };
	return open_in(s, watched, ptx_path, kernel, n_workers);
}

void session_close(struct session *s)
{
	gpul_exec_machine_destroy(s->machine);
	gpul_exec_program_destroy(s->program);
	while (s->n_buffers) {
		gpul_exec_memory_remove(s->memory, (uintptr_t)s->buffers[--s->n_buffers]);
		free(s->buffers[s->n_buffers]);
	}
	if (!s->watched)
		gpul_exec_memory_destroy(s->memory);
}

void session_param(struct session *s, const void *value, uint32_t bytes, uint32_t align)
{
	uint32_t at = (s->param_bytes + align - 1) / align * align;

	if (at + bytes > SESSION_PARAM_BYTES) {
		gpul_fail(&s->err, GPUL_EINVAL, 0, "parameters exceed %d bytes", SESSION_PARAM_BYTES);
		return;
	}
	memcpy(s->params + at, value, bytes);
	s->param_bytes = at + bytes;
}

void session_param_i32(struct session *s, int32_t v)
{
	session_param(s, &v, sizeof v, _Alignof(int32_t));
}

void *session_buffer(struct session *s, size_t bytes)
{
	gpul_exec_range range = { .bytes = bytes, .label = "cuMemAlloc" };
	void *p = s->n_buffers < SESSION_MAX_BUFFERS ? aligned_alloc(256, (bytes + 255) / 256 * 256) : NULL;

	if (!p) {
		gpul_fail(&s->err, GPUL_ENOMEM, 0, "no memory for a buffer of %zu bytes", bytes);
		return NULL;
	}
	memset(p, 0, bytes);
	s->buffers[s->n_buffers++] = p;
	range.base = (uintptr_t)p;
	if (!gpul_exec_memory_add(s->memory, &range, &s->err))
		gpul_exec_memory_written(s->memory, range.base, 0, bytes);
	return p;
}

void *session_param_buffer(struct session *s, size_t bytes)
{
	void *p = session_buffer(s, bytes);
	uint64_t address = (uintptr_t)p;

	session_param(s, &address, sizeof address, _Alignof(uint64_t));
	return p;
}

gpul_exec_launch *session_start(struct session *s, const struct session_shape *shape)
{
	gpul_exec_launch_config config = { .kernel = s->kernel, .params = s->params };
	gpul_exec_launch *l = NULL;

	memcpy(config.grid, shape->grid, sizeof config.grid);
	memcpy(config.block, shape->block, sizeof config.block);
	if (s->err.status == GPUL_OK)
		gpul_exec_launch_start(s->machine, &config, &l, &s->err);
	return l;
}

uint64_t session_finish(struct session *s, gpul_exec_launch *l)
{
	gpul_exec_fault fault = { 0 };
	uint64_t n = 0;

	if (!l)
		return 0;
	gpul_exec_launch_wait(l, -1, &fault);
	if (fault.kind)
		gpul_fail(&s->err, GPUL_ECUDA, (int)fault.kind, "%s", fault.text);
	else
		n = gpul_exec_launch_instructions(l);
	gpul_exec_launch_release(l);
	return n;
}
