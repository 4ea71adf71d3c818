/* so_nvjitlink.c — a fake nvJitLink whose behaviour depends on the text of its input: "die" aborts, "complain" logs an error but
 * succeeds, "fail" and "mute" fail with and without a log, "descriptors" logs how many are open. For other inputs the result is
 * the last input. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The functions that the loader looks up, declared as in nvJitLink.h except for the type of the handle. */
int nvJitLinkCreate(void **handle, uint32_t n, const char *const *options);
int nvJitLinkDestroy(void **handle);
int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes, const char *name);
int nvJitLinkComplete(void *handle);
int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes);
int nvJitLinkGetLinkedCubin(void *handle, void *cubin);
int nvJitLinkGetLinkedPtxSize(void *handle, size_t *bytes);
int nvJitLinkGetLinkedPtx(void *handle, void *ptx);
int nvJitLinkGetErrorLogSize(void *handle, size_t *bytes);
int nvJitLinkGetErrorLog(void *handle, void *log);
int nvJitLinkGetInfoLogSize(void *handle, size_t *bytes);
int nvJitLinkGetInfoLog(void *handle, void *log);
int nvJitLinkVersion(unsigned *major, unsigned *minor);

static const void *input;
static size_t input_bytes;
static const char *errors = "";
static char counted[80];

int nvJitLinkCreate(void **handle, uint32_t n, const char *const *options)
{
	static char one;

	*handle = &one;
	return n && strcmp(options[0], "-arch=sm_20") == 0 ? 17 : 0;
}

int nvJitLinkDestroy(void **handle)
{
	*handle = NULL;
	return 0;
}

int nvJitLinkAddData(void *handle, int type, const void *data, size_t bytes, const char *name)
{
	(void)handle, (void)type, (void)name;
	input = data;
	input_bytes = bytes;
	return 0;
}

static int input_is(const char *word)
{
	return input_bytes >= strlen(word) && memcmp(input, word, strlen(word)) == 0;
}

int nvJitLinkComplete(void *handle)
{
	(void)handle;
	if (input_is("die"))
		abort();
	if (input_is("descriptors")) {
		int n = 0;

		for (int fd = 3; fd < 1000; fd++)
			n += fcntl(fd, F_GETFD) >= 0;
		snprintf(counted, sizeof counted, "error   : descriptors other than the standard ones: %d\n", n);
		errors = counted;
	}
	if (input_is("complain"))
		errors = "error   : Multiple definition of '_Z1fi' in 'b.o', first defined in 'a.o'\n";
	if (input_is("fail"))
		errors = "error   : Undefined reference to '_Z5twicei' in 'a.o'\nERROR 9: finish\n";
	if (input_is("fail lto"))
		errors = "ptxas fatal   : Unresolved extern function '_Z5twicei'\n";
	return input_is("fail") ? 6 : input_is("mute") ? 5 : 0;
}

int nvJitLinkGetLinkedCubinSize(void *handle, size_t *bytes)
{
	(void)handle;
	*bytes = input_bytes;
	return 0;
}

int nvJitLinkGetLinkedCubin(void *handle, void *cubin)
{
	(void)handle;
	memcpy(cubin, input, input_bytes);
	return 0;
}

int nvJitLinkGetLinkedPtxSize(void *handle, size_t *bytes)
{
	return nvJitLinkGetLinkedCubinSize(handle, bytes);
}

int nvJitLinkGetLinkedPtx(void *handle, void *ptx)
{
	return nvJitLinkGetLinkedCubin(handle, ptx);
}

int nvJitLinkGetErrorLogSize(void *handle, size_t *bytes)
{
	(void)handle;
	*bytes = strlen(errors) + 1;
	return 0;
}

int nvJitLinkGetErrorLog(void *handle, void *log)
{
	(void)handle;
	strcpy(log, errors);
	return 0;
}

int nvJitLinkGetInfoLogSize(void *handle, size_t *bytes)
{
	(void)handle;
	*bytes = 0;
	return 0;
}

int nvJitLinkGetInfoLog(void *handle, void *log)
{
	(void)handle, (void)log;
	return 1;
}

int nvJitLinkVersion(unsigned *major, unsigned *minor)
{
	*major = 99;
	*minor = 7;
	return 0;
}
