/* so_tiny_soft.c — a fake software driver: gpuloadSoftLastFault identifies it as one. */
typedef int result;

result cuInit(unsigned flags);
result cuDriverGetVersion(int *version);
result cuDeviceGetCount(int *n);
const char *gpuloadSoftLastFault(void);

result cuInit(unsigned flags)
{
	return flags ? 1 : 0;
}

result cuDriverGetVersion(int *version)
{
	*version = 13000;
	return 0;
}

result cuDeviceGetCount(int *n)
{
	*n = 1;
	return 0;
}

const char *gpuloadSoftLastFault(void)
{
	return "kernel k, line 7: out of bounds";
}
