/* plugin_of.h — opens libnccl-net-gpuload.so as NCCL does, with any version of NCCL's interface for network plug-ins. */
#ifndef GPULOAD_TESTS_NCCL_NET_PLUGIN_OF_H
#define GPULOAD_TESTS_NCCL_NET_PLUGIN_OF_H

#include "nccl/net/nccl_abi.h"

struct plugin {
	int version;                  /* 10, 11 or 12 */
	const gpul_nccl_net_v10 *v10; /* of v10, v11 and v12, only the one for `version` is not NULL */
	const gpul_nccl_net_v11 *v11;
	const gpul_nccl_net_v12 *v12;
	void *context; /* from init(); only in versions 11 and 12 */
};

/* Select a function that all versions have, for a call such as PLUGIN_CALL(&p, test)(request, &done, NULL). */
#define PLUGIN_CALL(p, function) ((p)->v12 ? (p)->v12->function : (p)->v11 ? (p)->v11->function : (p)->v10->function)

/* Open the library of this build ($GPULOAD_BUILD, default build) and call init().  If shows is true, its messages go to stderr; else
 * only the last warning is kept.  Returns init()'s result; ends the process if the library or the version is missing. */
gpul_nccl_result plugin_open(int version, int shows, struct plugin *out);
void plugin_close(struct plugin *p);

gpul_nccl_result plugin_listen(struct plugin *p, int device, void *handle, void **listener);
gpul_nccl_result plugin_connect(struct plugin *p, int device, const void *handle, void **sender);

/* Get the properties of a device; only the fields that all versions have are set. */
gpul_nccl_result plugin_properties(struct plugin *p, int device, gpul_nccl_properties_v12 *out);

/* The last warning of the plug-in, "": none. */
const char *plugin_warning(void);

#endif
