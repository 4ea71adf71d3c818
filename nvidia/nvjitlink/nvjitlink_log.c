/* nvjitlink_log.c — adds gpuload's own lines to the error log of a link. */
#include "nvidia/nvjitlink/nvidia_nvjitlink_internal.h"

int jl_complain(struct jl_link *l, int result, const char *text)
{
	for (; *text || (l->errors.n && l->errors.at[l->errors.n - 1] != '\n'); text += *text != 0) {
		char *c = gpul_array_push(&l->errors);

		if (!c)
			break;
		*c = *text ? *text : '\n';
	}
	return result;
}
