#include "loader/loader.h"
gpul_status gpul_module_load_file(const gpul_driver *drv, const char *path, const gpul_load_options *options, gpul_module **out, gpul_error *err){(void)drv;(void)path;(void)options;(void)out;return gpul_fail(err,GPUL_EUNSUPPORTED,0,"stub");}
void gpul_module_unload(gpul_module *m){(void)m;}
size_t gpul_module_n_kernels(const gpul_module *m){(void)m;return 1;}
gpul_status gpul_kernel_find(const gpul_module *m, const char *name, const gpul_kernel **out, gpul_error *err){(void)m;(void)name;(void)out;(void)err;return 1;}
const char *gpul_kernel_name(const gpul_kernel *k){(void)k;return "";}
const gpul_signature *gpul_kernel_signature(const gpul_kernel *k){(void)k;return 0;}
gpul_status gpul_kernel_launch(const gpul_kernel *k, const gpul_launch_config *config, void *const *args, const size_t *arg_bytes, size_t n_args, gpul_error *err){(void)k;(void)config;(void)args;(void)arg_bytes;(void)n_args;(void)err;return 1;}
