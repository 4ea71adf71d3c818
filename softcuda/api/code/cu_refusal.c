/* cu_refusal.c — refuses kernels that cannot run, because they, or functions that they call directly, contain an instruction that
 * is not implemented.
 *
 * Loading succeeds, so that the other kernels of the module can run. The first call that gets a launchable function refuses the
 * kernel: cuModuleGetFunction, cuKernelGetFunction, cuFuncLoad or a launch. cuLibraryGetKernel and queries of attributes and
 * parameters succeed. In a large linked module, whose functions are decoded later, only cuFuncLoad and launches refuse a kernel,
 * because NCCL gets hundreds and launches a few. */
#include "softcuda/api/code/cu_code_internal.h"

#include <stdio.h>

CUresult soft_prepare(const gpul_exec_kernel *k)
{
	return gpul_exec_kernel_prepare(k, NULL) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult soft_check_kernel(const gpul_exec_kernel *k)
{
	const CUresult r = soft_prepare(k);
	const char *why = r ? NULL : gpul_exec_kernel_refusal(k);

	if (!why)
		return r;
	soft_report_fault(why);
	return soft_refuse(CUDA_ERROR_NOT_SUPPORTED, "%s", why);
}

CUresult soft_check_request(const gpul_exec_kernel *k)
{
	return gpul_exec_kernel_is_decoded_later(k) ? soft_prepare(k) : soft_check_kernel(k);
}

const char *soft_refused_kernels(const gpul_exec_program *p, char *text, size_t text_bytes)
{
	size_t used = 0;

	*text = 0;
	for (size_t i = 0; i < gpul_exec_n_kernels(p) && used < text_bytes; i++) {
		const char *why = gpul_exec_kernel_refusal(gpul_exec_kernel_at(p, i));

		if (why)
			used += (size_t)snprintf(text + used, text_bytes - used, "%s%s", used ? "\n" : "", why);
	}
	return text;
}
