/* cu_coredump.c — core dump attributes.  They are only stored, because programs set and query them: a fault of a kernel writes no
 * core dump, but a message that names the instruction, and `gpuload debug` stops at that instruction. */
#include "softcuda/api/base/cu_state_internal.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES = 1024, N_ATTRIBUTES = 8 };

enum { /* numbers instead of names, because <cuda.h> of CUDA 12.4 lacks one of the names */
       COREDUMP_TRIGGER_HOST = 2,
       COREDUMP_FILE = 5,
       COREDUMP_PIPE = 6,
       COREDUMP_FLAGS = 7,
};

/* The values, which all contexts share: cuCoredumpSetAttribute, which should set a value of one context, sets it for all, because no
 * core dumps are written, so that separate values would have no effect. */
static bool switches[N_ATTRIBUTES] = { [COREDUMP_TRIGGER_HOST] = true };
static char file[TEXT_BYTES], trigger[TEXT_BYTES];
static int content_flags;

/* Return the value of an attribute that is a text, initially a default file name; NULL: the attribute is not a text. */
static char *text_of(int attribute)
{
	char host[256] = "localhost";
	char *text = attribute == COREDUMP_FILE ? file : attribute == COREDUMP_PIPE ? trigger : NULL;

	if (text && !*text) {
		(void)gethostname(host, sizeof host - 1);
		snprintf(text, TEXT_BYTES, "%s.cuda.%s.%d", attribute == COREDUMP_FILE ? "core" : "corepipe", host, (int)getpid());
	}
	return text;
}

static size_t size_of(int attribute)
{
	if (attribute == COREDUMP_FILE || attribute == COREDUMP_PIPE)
		return TEXT_BYTES;
	return attribute == COREDUMP_FLAGS ? sizeof content_flags : sizeof *switches;
}

EXPORT CUresult cuCoredumpGetAttributeGlobal(CUcoredumpSettings attribute, void *value, size_t *value_bytes)
{
	CUresult r = soft_check_initialised();
	const char *text;

	if (r)
		return r;
	if (!value_bytes || (int)attribute < 1 || (int)attribute >= N_ATTRIBUTES || (value && *value_bytes < 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (!value) {
		*value_bytes = size_of((int)attribute);
		return CUDA_SUCCESS;
	}
	soft_lock();
	text = text_of((int)attribute);
	if (text)
		snprintf(value, *value_bytes, "%s", text);
	else if (*value_bytes < size_of((int)attribute))
		r = CUDA_ERROR_INVALID_VALUE;
	else if ((int)attribute == COREDUMP_FLAGS)
		memcpy(value, &content_flags, sizeof content_flags);
	else
		memcpy(value, &switches[attribute], sizeof *switches);
	soft_unlock();
	return r;
}

EXPORT CUresult cuCoredumpSetAttributeGlobal(CUcoredumpSettings attribute, void *value, size_t *value_bytes)
{
	CUresult r = soft_check_initialised();
	char *text;

	if (r)
		return r;
	if (!value || !value_bytes || (int)attribute < 1 || (int)attribute >= N_ATTRIBUTES)
		return CUDA_ERROR_INVALID_VALUE;
	soft_lock();
	text = text_of((int)attribute);
	if (text ? !*value_bytes || *value_bytes > TEXT_BYTES : *value_bytes < size_of((int)attribute)) {
		r = soft_refuse(CUDA_ERROR_INVALID_VALUE,
				"cuCoredumpSetAttribute: %zu bytes were given for attribute %d, whose size is %zu bytes", *value_bytes,
				(int)attribute, size_of((int)attribute));
	} else if (text) {
		snprintf(text, TEXT_BYTES, "%.*s", (int)*value_bytes, (const char *)value);
	} else if ((int)attribute == COREDUMP_FLAGS) {
		memcpy(&content_flags, value, sizeof content_flags);
	} else {
		memcpy(&switches[attribute], value, sizeof *switches);
	}
	soft_unlock();
	return r;
}

static CUresult check_context(void)
{
	struct context *ctx;
	CUresult r = soft_enter(&ctx);

	if (!r)
		soft_unlock();
	return r;
}

EXPORT CUresult cuCoredumpGetAttribute(CUcoredumpSettings attribute, void *value, size_t *value_bytes)
{
	CUresult r = check_context();

	return r ? r : cuCoredumpGetAttributeGlobal(attribute, value, value_bytes);
}

EXPORT CUresult cuCoredumpSetAttribute(CUcoredumpSettings attribute, void *value, size_t *value_bytes)
{
	CUresult r = check_context();

	return r ? r : cuCoredumpSetAttributeGlobal(attribute, value, value_bytes);
}
