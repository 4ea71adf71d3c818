/* fault.c — the message of a fault, in one line: source position, access or instruction, cause, block and thread. */
#include <stdarg.h>
#include <stdio.h>

#include "core/file/file.h"
#include "softcuda/exec/shown_name_internal.h"
#include "softcuda/exec/warp/observe_internal.h"

/* maximum length of the kernel's name in a message, so that the block and thread after the name fit into a gpul_error */
enum { NAME_BYTES = 80 };

void gpul_launch_fault(struct gpul_exec_launch *l, const gpul_exec_fault *fault)
{
	pthread_mutex_lock(&l->lock);
	if (l->fault.kind == GPUL_EXEC_OK)
		l->fault = *fault;
	pthread_mutex_unlock(&l->lock);
	atomic_store(&l->stop, true);
	if (atomic_load(&l->nest))
		l->machine->nests->stop_children(l);
}

void gpul_lane_thread(const struct warp_state *s, unsigned lane, uint32_t thread[3])
{
	const uint32_t *block = s->block->launch->block;
	uint32_t t = s->index * LANES + lane;

	thread[0] = t % block[0];
	thread[1] = t / block[0] % block[1];
	thread[2] = t / (block[0] * block[1]);
}

/* Shorten a long path to its end. */
static const char *short_name(const char *path)
{
	enum { LONG = 60 };

	return strlen(path) > LONG ? gpul_file_name(path) : path;
}

static const gpul_ptx_file *find_file(const gpul_ptx_module *m, uint32_t number)
{
	for (uint32_t k = 0; k < m->n_files; k++)
		if (m->files[k].number == number)
			return &m->files[k];
	return NULL;
}

static bool is_source(const gpul_ptx_module *m, const char *name)
{
	for (uint32_t k = 0; k < m->n_files; k++)
		if (!strcmp(gpul_file_name(gpul_ptx_name(m, m->files[k].path)), name))
			return true;
	return false;
}

/* A line of a source file; path is "" if the module does not name the file. */
struct line {
	const gpul_ptx_file *file;
	const char *path;
	uint32_t line;
};

static struct line line_at(const gpul_ptx_module *m, uint32_t file, uint32_t line)
{
	const gpul_ptx_file *f = line ? find_file(m, file) : NULL;

	return (struct line){ f, f ? gpul_ptx_name(m, f->path) : "", line };
}

/* Returns true if the path is a CUDA header: it is in an include folder of the CUDA toolkit, or its file name is that of a CUDA header. */
static bool is_of_toolkit(const char *path)
{
	static const char *const parts[] = { "/cooperative_groups", "/crt/", "/cccl/", "/cuda/include/", "/cuda_runtime/include/",
					     "/cuda_cccl/include/" };
	static const char *const names[] = { "sm_", "device_atomic_functions", "cooperative_groups", "cuda_pipeline", "cuda_awbarrier" };
	const char *include = strstr(path, "/include/"), *folder = include, *name = gpul_file_name(path), *version;

	for (size_t k = 0; k < sizeof parts / sizeof parts[0]; k++)
		if (strstr(path, parts[k]))
			return true;
	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
		if (!strncmp(name, names[k], strlen(names[k])) && (strstr(name, ".h")))
			return true;
	while (folder && folder > path && folder[-1] != '/')
		folder--;
	if (!folder)
		return false;
	version = folder + (!strncmp(folder, "cuda-", 5) ? 5 : !strncmp(folder, "cu", 2) ? 2 : 0);
	return (version > folder && *version >= '0' && *version <= '9') ||
	       (strstr(path, "/targets/") && include > path + 6 && !strncmp(include - 6, "-linux", 6));
}

/* .loc number *row is in an inlined function: return the line of the call.  *row receives an earlier .loc of that line;
 * GPUL_PTX_NONE: none. */
static struct line caller_of(const gpul_ptx_module *m, uint32_t *row)
{
	const gpul_ptx_loc *loc = &m->locs[*row];
	const struct line caller = line_at(m, loc->at_file, loc->at_line);

	for (uint32_t k = *row; k-- > 0;) {
		const gpul_ptx_loc *at = &m->locs[k];

		if (at->file == loc->at_file && at->line == loc->at_line && at->column == loc->at_column) {
			*row = k;
			return caller;
		}
	}
	*row = GPUL_PTX_NONE;
	return caller;
}

/* Of the lines of nested inlined calls, return the innermost that is not in a CUDA header; if all are, return the outermost. */
static struct line line_of_user(const gpul_ptx_module *m, uint32_t row)
{
	enum { MOST_CALLS = 64 };
	struct line at = line_at(m, m->locs[row].file, m->locs[row].line);

	for (unsigned n = 0; n < MOST_CALLS && row != GPUL_PTX_NONE && m->locs[row].at_line && is_of_toolkit(at.path); n++) {
		const struct line caller = caller_of(m, &row);

		if (!*caller.path)
			break;
		at = caller;
	}
	return at;
}

/* Set the CUDA C++ line in *f, and write it as "kernel.cu:7".  For an inlined function of the same file, write its line, then the
 * line of the call.  For an inlined function of another file, such as a header, write the line of the call, which is in the user's
 * own file, then "inlined from sum.h:3".  Lines in CUDA's own headers are skipped. */
static void cuda_position(const gpul_ptx_module *m, uint32_t row, gpul_exec_fault *f, char *buf, size_t bytes)
{
	const gpul_ptx_loc *loc = &m->locs[row];
	const struct line inner = line_at(m, loc->file, loc->line), caller = line_at(m, loc->at_file, loc->at_line);
	struct line own = is_of_toolkit(inner.path) ? line_of_user(m, row) : *caller.path ? caller : inner;
	const bool other = strcmp(own.path, inner.path) != 0;
	int n;

	if (!*inner.path)
		return;
	own = other ? own : inner;
	f->source_line = own.line;
	f->source_timestamp = own.file->timestamp;
	f->source_bytes = own.file->bytes;
	snprintf(f->source, sizeof f->source, "%s", own.path);
	n = snprintf(buf, bytes, "%.40s:%u", gpul_file_name(f->source), f->source_line);
	if (*caller.path && (size_t)n < bytes)
		snprintf(buf + n, bytes - (size_t)n, ", inlined %s %.40s:%u", other ? "from" : "at",
			 gpul_file_name(other ? inner.path : caller.path), other ? inner.line : caller.line);
}

/* Write the position of an instruction: "kernel.ptx:31"; if the PTX has .loc directives, "kernel.ptx:31 (kernel.cu:7)".
 * For PTX that gpuload itself compiled from a CUDA C++ file, write only "dir/kernel.cu:7", because the user has not seen the PTX. */
void gpul_insn_place(const struct func_code *code, const struct insn *i, gpul_exec_fault *f, char *buf, size_t bytes)
{
	const gpul_ptx_module *m = code->program->module;
	const gpul_ptx_inst *in = gpul_insn_ptx(code, i);
	const char *name = short_name(code->program->file_name);
	gpul_exec_fault unused = { 0 };
	char cuda[120] = "";

	f = f ? f : &unused;
	if (in && in->loc != GPUL_PTX_NONE)
		cuda_position(m, in->loc, f, cuda, sizeof cuda);
	if (*cuda && !strcmp(gpul_file_name(name), gpul_file_name(f->source)))
		snprintf(buf, bytes, "%.60s%s", name, strchr(cuda, ':'));
	else if (*cuda && is_source(m, gpul_file_name(name)))
		snprintf(buf, bytes, "%s", cuda);
	else
		snprintf(buf, bytes, "%.60s:%u%s%s%s", name, in ? in->line : code->ptx->line, *cuda ? " (" : "", cuda, *cuda ? ")" : "");
}

const char *gpul_index_text(const uint32_t i[3], const uint32_t extent[3], char buf[INDEX_BYTES])
{
	const int n = extent[2] > 1 ? 3 : extent[1] > 1 ? 2 : 1;

	snprintf(buf, INDEX_BYTES, n == 3 ? "%u,%u,%u" : n == 2 ? "%u,%u" : "%u", i[0], i[1], i[2]);
	return buf;
}

static const struct insn *record_fault(struct warp_state *s, const struct insn *i, unsigned lane, gpul_exec_fault *f, const char *what)
{
	const struct gpul_exec_launch *l = s->block->launch;
	char place[200], name[NAME_BYTES], block[INDEX_BYTES], thread[INDEX_BYTES];
	const char *colon = ": ";
	int n;

	f->image = s->frame->code->program->file_name;
	gpul_insn_place(s->frame->code, i, f, place, sizeof place);
	if (f->kind == GPUL_EXEC_ASSERT && strstr(what, place)) /* the text of an assertion already begins with its position */
		*place = '\0', colon = "";
	memcpy(f->block, s->block->index, sizeof f->block);
	gpul_lane_thread(s, lane, f->thread);
	n = snprintf(f->text, sizeof f->text, "%s%s%.200s; %s, block %s, thread %s", place, colon, what,
		     gpul_shown_name(l->kernel->info.name, name, sizeof name), gpul_index_text(f->block, l->grid, block),
		     gpul_index_text(f->thread, l->block, thread));
	if (n < 0)
		f->text[0] = '\0';
	gpul_launch_fault(s->block->launch, f);
	return raise_event(s, EVENT_FAULT, i);
}

const struct insn *gpul_fault_text(struct warp_state *s, const struct insn *i, gpul_exec_fault_kind kind, unsigned lane, const char *fmt,
				   ...)
{
	gpul_exec_fault f = { .kind = kind };
	char what[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	return record_fault(s, i, lane, &f, what);
}

typedef unsigned long long ull;

/* Write why the device may not access (or may not write) an address in the range. */
static void explain_right(const struct warp_state *s, const gpul_exec_range *r, uint64_t at, bool write, char *buf, size_t size)
{
	const unsigned device = s->cache->device;
	bool denied = r->denied >> device & 1;

	if (r->flags & GPUL_EXEC_MEM_MULTICAST && write && !gpul_copies_lookup(s->cache, 0, at, 1, write, buf, size))
		return;
	if (r->flags & GPUL_EXEC_MEM_MULTICAST)
		snprintf(buf, size, "is an address of a multicast object, which only stores and multimem instructions access");
	else if (denied || (write && r->unwritable >> device & 1))
		snprintf(buf, size, "is in %s memory%s device %u %s%s%s", r->label, denied ? ", but" : " that", device,
			 denied ? "has no access" : "may only read", r->remedy ? ": see " : "", r->remedy ? r->remedy : "");
	else
		snprintf(buf, size, "is in read-only %s", r->label);
}

/* Return what kind of host memory is at an address that is not device memory; NULL: there is no readable memory. */
static const char *host_memory_at(uint64_t at)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	const char *what = NULL;
	char line[512], rights[8];
	ull from, to;
	int path;

	while (maps && !what && fgets(line, sizeof line, maps)) {
		path = 0;
		if (sscanf(line, "%llx-%llx %7s %*s %*s %*s %n", &from, &to, rights, &path) < 3 || at < from || at >= to)
			continue;
		if (*rights != 'r')
			break;
		what = !strncmp(line + path, "[stack", 6) ? "the stack"
		       : line[path] == '/'                ? "a static variable or a file"
							  : "malloc or new";
	}
	if (maps)
		fclose(maps);
	return what;
}

enum { FAR = 1 << 30 }; /* an invalid address at least this far after an allocation is not reported as an overrun of the allocation */

/* Returns true if a parameter of the kernel is a pointer in [from, to]. */
static bool has_pointer(const struct gpul_exec_launch *l, uint64_t from, uint64_t to)
{
	const uint32_t bytes = l->kernel->info.param_bytes;
	uint64_t p;

	for (uint32_t k = 0; k + sizeof p <= bytes; k += sizeof p) {
		memcpy(&p, l->params + k, sizeof p);
		if (p >= from && p <= to)
			return true;
	}
	return false;
}

/* Return what kind of host memory is at the address; NULL: there is none, or the access looks like an overrun of the device memory
 * `nearest` (which may be NULL).  An overrun is assumed if a kernel parameter points to `nearest`, and none between it and the access. */
static const char *host_pointer(const struct warp_state *s, uint64_t at, const gpul_exec_range *nearest)
{
	const struct gpul_exec_launch *l = s->block->launch;

	if (nearest && (at - nearest->base < nearest->bytes + nearest->spare ||
			(has_pointer(l, nearest->base, nearest->base + nearest->bytes + nearest->spare) &&
			 !has_pointer(l, nearest->base + nearest->bytes + nearest->spare + 1, at))))
		return NULL;
	return host_memory_at(at);
}

/* Write why an access to a global address is not allowed; name the range at or before it.  Returns true for host memory. */
static bool explain_global(const struct warp_state *s, uint64_t at, bool write, char *buf, size_t size)
{
	gpul_exec_range r, freed;
	const bool is_near = gpul_memory_nearest(s->cache->memory, at, &r) && at - r.base <= r.bytes + FAR,
		   is_in = is_near && at - r.base < r.bytes;
	const char *host;

	if (at < 4096)
		snprintf(buf, size, "is a NULL pointer");
	else if (is_in && (r.denied | r.unwritable | r.flags) && !gpul_range_lookup(s->cache, 0, at, 1, write))
		explain_right(s, &r, at, write, buf, size);
	else if (is_in)
		snprintf(buf, size, "crosses the end of a %llu-byte %s allocation, %llu bytes before it", (ull)r.bytes, r.label,
			 (ull)(r.base + r.bytes - at));
	else if (gpul_exec_memory_freed(s->cache->memory, at, &freed))
		snprintf(buf, size, "is in a %llu-byte %s allocation that was freed", (ull)freed.bytes, freed.label);
	else if ((host = host_pointer(s, at, is_near ? &r : NULL)))
		snprintf(buf, size,
			 "is host memory (pageable: %s), which a kernel cannot access; copy it with cudaMemcpy or allocate it with "
			 "cudaMallocManaged",
			 host);
	else if (is_near)
		snprintf(buf, size, "is %llu bytes past the end of a %llu-byte %s allocation", (ull)(at - r.base - r.bytes), (ull)r.bytes,
			 r.label);
	else
		snprintf(buf, size, "is not in any allocation");
	return !strncmp(buf, "is host", 7);
}

static bool explain_access(const struct warp_state *s, unsigned flags, uint64_t at, bool write, char *buf, size_t size)
{
	switch (flags & SPACE_MASK) {
	case SPACE_SHARED:
		snprintf(buf, size, "is beyond the block's %u bytes of shared memory", program_shared_bytes(s->block->launch));
		break;
	case SPACE_LOCAL:
		snprintf(buf, size, "is beyond the thread's %u bytes of local memory", s->local_bytes);
		break;
	case SPACE_PARAM:
		snprintf(buf, size,
			 write ? "is in the kernel's parameters, which are read-only" : "is beyond the kernel's %u bytes of parameters",
			 s->param_bytes);
		break;
	default:
		return explain_global(s, at, write, buf, size);
	}
	return false;
}

const struct insn *gpul_fault_access(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t address, unsigned bytes,
				     bool write)
{
	static const char *const spaces[] = { "global ", "", "shared ", "local ", "param " };
	/* on an H200, .shared addresses from 16 MiB on cause CUDA_ERROR_ILLEGAL_INSTRUCTION */
	const bool misaligned = address & (bytes - 1), no_address = (i->flags & SPACE_MASK) == SPACE_SHARED && address >> 24;
	gpul_exec_fault f = { .kind = misaligned   ? GPUL_EXEC_MISALIGNED
				      : no_address ? GPUL_EXEC_ILLEGAL_INSTRUCTION
						   : GPUL_EXEC_ILLEGAL_ADDRESS,
			      .address = address,
			      .global = (i->flags & SPACE_MASK) <= SPACE_GENERIC };
	char what[240], why[180];

	if (misaligned)
		snprintf(why, sizeof why, "is not a multiple of %u", bytes);
	else
		f.host = explain_access(s, i->flags, address, write, why, sizeof why);
	snprintf(what, sizeof what, "%u-byte %s%s at 0x%llx %s", bytes, spaces[i->flags & SPACE_MASK], write ? "store" : "load",
		 (ull)address, why);
	return record_fault(s, i, lane, &f, what);
}

const struct insn *gpul_fault_multimem(struct warp_state *s, const struct insn *i, unsigned lane, uint64_t address, unsigned bytes,
				       bool write, const char *why)
{
	gpul_exec_fault f = { .kind = GPUL_EXEC_ILLEGAL_ADDRESS, .address = address, .global = true };
	char what[240], outside[180];
	gpul_exec_range r;

	if (!gpul_exec_memory_find(s->cache->memory, address, &r)) {
		f.host = explain_global(s, address, write, outside, sizeof outside);
		why = outside;
	}
	snprintf(what, sizeof what, "%u-byte multimem %s at 0x%llx %s", bytes, write ? "store" : "load", (ull)address, why);
	return record_fault(s, i, lane, &f, what);
}

void gpul_fault_pages(struct block *b, uint64_t address)
{
	const struct gpul_exec_launch *l = b->launch;
	gpul_exec_fault f = {
		.kind = GPUL_EXEC_ILLEGAL_ADDRESS, .address = address, .global = true, .image = l->kernel->code->program->file_name
	};
	gpul_exec_range r = { 0 };
	char name[NAME_BYTES], index[INDEX_BYTES];

	(void)gpul_memory_nearest(l->machine->memory, address, &r);
	memcpy(f.block, b->index, sizeof f.block);
	snprintf(f.text, sizeof f.text,
		 "%.60s: access at 0x%llx is %llu bytes into a %llu-byte %s allocation, whose pages the program has since unmapped or "
		 "protected; %s, block %s",
		 short_name(f.image), (ull)address, (ull)(address - r.base), (ull)r.bytes, r.label,
		 gpul_shown_name(l->kernel->info.name, name, sizeof name), gpul_index_text(f.block, l->grid, index));
	gpul_launch_fault(b->launch, &f);
}
