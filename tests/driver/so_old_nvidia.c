/* so_old_nvidia.c — a fake NVIDIA driver of CUDA 12.0: it has some entry points under older names and lacks many.
 * FAKE_DEVICES in the environment is the number of its devices; if it is not set, cuInit fails. */
#include <stdlib.h>

typedef int result;

result cuInit(unsigned flags);
result cuDriverGetVersion(int *version);
result cuDeviceGetCount(int *n);
result cuGetErrorName(result r, const char **text);
result cuGetErrorString(result r, const char **text);
result cuEventElapsedTime(float *ms, void *from, void *to);

result cuInit(unsigned flags)
{
	(void)flags;
	return getenv("FAKE_DEVICES") ? 0 : 803; /* CUDA_ERROR_SYSTEM_DRIVER_MISMATCH */
}

result cuDriverGetVersion(int *version)
{
	*version = 12000;
	return 0;
}

result cuDeviceGetCount(int *n)
{
	*n = atoi(getenv("FAKE_DEVICES"));
	return 0;
}

result cuGetErrorName(result r, const char **text)
{
	*text = r == 803 ? "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" : "CUDA_ERROR_NOT_SUPPORTED";
	return 0;
}

result cuGetErrorString(result r, const char **text)
{
	(void)r;
	*text = "its words";
	return 0;
}

result cuEventElapsedTime(float *ms, void *from, void *to)
{
	(void)from, (void)to;
	*ms = 2.5f;
	return 0;
}
