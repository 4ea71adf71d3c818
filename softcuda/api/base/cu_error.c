/* cu_error.c — the names and texts of the errors of the driver API. */
#include "core/cuda_errors.h"
#include "softcuda/api/base/cu_state_internal.h"

static const struct error {
	int number;
	const char *name, *text; /* name NULL: only the runtime API has this error */
} errors[] = {
#define ROW(number, driver_name, runtime_name, text) { number, driver_name, text },
	GPUL_CUDA_ERRORS(ROW)
#undef ROW
};

static const struct error *find_error(CUresult r)
{
	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i].number == (int)r && errors[i].name)
			return &errors[i];
	return NULL;
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **out)
{
	const struct error *e = find_error(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = e ? e->name : NULL;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **out)
{
	const struct error *e = find_error(error);

	if (!out)
		return CUDA_ERROR_INVALID_VALUE;
	*out = e ? e->text : NULL;
	return e ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
