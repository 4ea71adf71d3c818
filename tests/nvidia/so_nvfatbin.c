/* so_nvfatbin.c — replaces NVIDIA's libnvfatbin: it counts its inputs, so that a test can check which functions were called. */
#include <stddef.h>
#include <string.h>

enum { OK, NULL_POINTER = 5 };

static struct {
	unsigned n_ptx, n_cubins, n_bytes;
	char arch[16];
} got;

int nvFatbinAddPTX(void *handle, const char *code, size_t bytes, const char *arch, const char *name, const char *options);
int nvFatbinAddPTX(void *handle, const char *code, size_t bytes, const char *arch, const char *name, const char *options)
{
	if (!handle || !code || !name || !options)
		return NULL_POINTER;
	got.n_ptx++;
	got.n_bytes += (unsigned)bytes;
	strncpy(got.arch, arch, sizeof got.arch - 1);
	return OK;
}

int nvFatbinAddCubin(void *handle, const void *code, size_t bytes, const char *arch, const char *name);
int nvFatbinAddCubin(void *handle, const void *code, size_t bytes, const char *arch, const char *name)
{
	(void)handle;
	(void)arch;
	(void)name;
	if (!code)
		return NULL_POINTER;
	got.n_cubins++;
	got.n_bytes += (unsigned)bytes;
	return OK;
}

/* The returned size encodes the calls so far: 2 | 1 << 8 | 300 << 16 means 2 with PTX, 1 with a cubin, 300 bytes. */
int nvFatbinSize(void *handle, size_t *bytes);
int nvFatbinSize(void *handle, size_t *bytes)
{
	(void)handle;
	*bytes = got.n_ptx | got.n_cubins << 8 | (size_t)got.n_bytes << 16;
	return OK;
}
