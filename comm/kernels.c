/* kernels.c — the kernels of comm/kernels, embedded as PTX, each file loaded when its first kernel is used. */
#include "comm/comm_internal.h"

/* The assembler embeds a PTX file; the path is relative to the folder in which the compiler runs. */
#define EMBED(name)                                                             \
	__asm__(".pushsection .rodata\n"                                        \
		".global gpul_comm_ptx_" #name ", gpul_comm_ptx_" #name "_end\n" \
		"gpul_comm_ptx_" #name ": .incbin \"comm/kernels/" #name ".ptx\"\n" \
		"gpul_comm_ptx_" #name "_end: .byte 0\n"                        \
		".popsection");                                                 \
	extern const char gpul_comm_ptx_##name[], gpul_comm_ptx_##name##_end[]

EMBED(sendrecv);

#define FILE_OF(name) { #name ".ptx", gpul_comm_ptx_##name, gpul_comm_ptx_##name##_end }

enum { FILE_SENDRECV };
static const struct ptx_file {
	const char *name, *begin, *end;
} files[] = {
	[FILE_SENDRECV] = FILE_OF(sendrecv),
};
_Static_assert(sizeof files / sizeof *files <= GPUL_COMM_MAX_FILES, "room in struct gpul_comm");

static const struct kernel_source {
	int file;
	const char *name;
} kernels[N_KERNELS] = {
	[KERNEL_SENDRECV] = { FILE_SENDRECV, "gpul_comm_sendrecv" },
};

gpul_status gpul_comm_kernel(gpul_comm *c, enum kernel_id id, CUfunction *out, gpul_error *err)
{
	const struct kernel_source *source = &kernels[id];
	const struct ptx_file *file = &files[source->file];
	gpul_module **module = &c->modules[source->file];
	const gpul_kernel *k;
	gpul_status st = GPUL_OK;

	if (!c->kernels[id]) {
		if (!*module)
			st = gpul_module_load_ptx(c->drv, file->begin, (size_t)(file->end - file->begin), file->name, NULL, module,
						  err);
		st = st ? st : gpul_kernel_find(*module, source->name, &k, err);
		st = st ? st : gpul_kernel_prepare(k, err);
		st = st ? st : gpul_kernel_function(k, &c->kernels[id], err);
	}
	*out = c->kernels[id];
	return st;
}

void gpul_comm_kernels_unload(gpul_comm *c)
{
	for (unsigned i = 0; i < GPUL_COMM_MAX_FILES; i++)
		gpul_module_unload(c->modules[i]);
}
