/* udp.c — the table of the functions of the backend reliable-udp. */
#include "rdma/udp/udp_internal.h"

const gpul_rdma_backend gpul_rdma_udp = {
	.name = "reliable-udp",
	.open = gpul_udp_device_open,
	.close = gpul_udp_device_close,
	.about = gpul_udp_device_about,
	.reg = gpul_udp_reg,
	.dereg = gpul_udp_dereg,
	.create_path = gpul_udp_path_create,
	.describe = gpul_udp_path_describe,
	.connect_path = gpul_udp_path_connect,
	.post = gpul_udp_post,
	.poll = gpul_udp_poll,
	.break_path = gpul_udp_path_break,
	.destroy_path = gpul_udp_path_destroy,
	.stats = gpul_udp_path_stats,
	.record = gpul_udp_path_record,
};
