/* cu_jit.c — the JIT options of a load call: the buffers for its messages, and the register limit.
 *
 * The value of a buffer-size option is the size of the buffer before the call, and the number of bytes written after it.  All other
 * options control code generation and are ignored, because an interpreter generates no code. */
#include "softcuda/api/code/cu_code_internal.h"

#include <stdio.h>
#include <string.h>

CUresult soft_jit_options(unsigned n, CUjit_option *options, void **values, struct jit_log *out)
{
	memset(out, 0, sizeof *out);
	if (n && (!options || !values))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < n; i++) {
		if ((unsigned)options[i] >= CU_JIT_NUM_OPTIONS)
			return soft_refuse(CUDA_ERROR_INVALID_VALUE, "unknown JIT option %d", (int)options[i]);
		if (options[i] == CU_JIT_INFO_LOG_BUFFER)
			out->info = values[i];
		else if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
			out->error = values[i];
		else if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES)
			out->info_filled = &values[i];
		else if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
			out->error_filled = &values[i];
		else if (options[i] == CU_JIT_MAX_REGISTERS)
			out->max_registers = (unsigned)(uintptr_t)values[i];
	}
	/* The value of a size option is not a pointer, but an unsigned int cast to void *. */
	out->info_bytes = out->info_filled ? (unsigned)(uintptr_t)*out->info_filled : 0;
	out->error_bytes = out->error_filled ? (unsigned)(uintptr_t)*out->error_filled : 0;
	return CUDA_SUCCESS;
}

static void write_log(char *buffer, size_t room, void **filled, const char *text)
{
	int n = buffer && room ? snprintf(buffer, room, "%s", text) : 0;

	if (n > 0 && (size_t)n >= room)
		n = (int)room - 1;
	if (filled)
		*filled = (void *)(uintptr_t)(unsigned)(n > 0 ? n : 0);
}

CUresult soft_jit_error(const struct jit_log *log, CUresult r, const char *text)
{
	write_log(log->error, log->error_bytes, log->error_filled, text);
	write_log(log->info, log->info_bytes, log->info_filled, "");
	/* If the application passes a buffer, print no error: the application reads the message, and may try several images on purpose. */
	return log->error && log->error_bytes ? soft_answer(r, "%s", text) : soft_refuse(r, "%s", text);
}

void soft_jit_done(const struct jit_log *log, const char *info)
{
	write_log(log->error, log->error_bytes, log->error_filled, "");
	write_log(log->info, log->info_bytes, log->info_filled, info);
}
