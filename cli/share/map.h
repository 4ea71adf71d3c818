/* map.h — the picture of gpuload map: processes, and the addresses at which they map shared memory.
 *
 *     map.c ─ query the owner ─> gpul_ipc_share ─ map_picture_make ─> map_picture ─┬─ map_text.c
 *                                                                                  └─ map_svg.c
 *
 * map_text.c and map_svg.c draw the same picture: the memory as a band in the middle, the owner and every second peer on its left, the
 * other peers on its right, an arrow from each address range to the band. */
#ifndef GPULOAD_CLI_SHARE_MAP_H
#define GPULOAD_CLI_SHARE_MAP_H

#include "cli/share/share.h"

extern const struct cli_cmd cli_map;

enum { MAP_TEXT_BYTES = 48, MAP_BAND_LINES = 6 };

struct map_process {
	char title[MAP_TEXT_BYTES];  /* such as "pid 4711 gpuload" */
	char role[MAP_TEXT_BYTES];   /* such as "owner" or "peer in slot 3" */
	char access[MAP_TEXT_BYTES]; /* such as "reads and writes" */
	char cpu[2][MAP_TEXT_BYTES]; /* two lines: "CPU 0x7f3a40001000", "  - 0x7f3a44001000" */
	char gpu[2][MAP_TEXT_BYTES];
	char device[MAP_TEXT_BYTES]; /* such as "on GPU-5f3a91c2..0007" */
	bool has_cpu, has_gpu;       /* the CPU or the GPU of the process can access the memory, so its arrow is drawn */
};

struct map_picture {
	char title[160]; /* such as "weights: host-numa, 64 MiB of f32 1024x1024, ..." */
	/* The lines of text in the box of the memory: kind; control page; data; type; mapped bytes; node or GPU. */
	char band[MAP_BAND_LINES][MAP_TEXT_BYTES];
	bool control; /* true: the memory has a control page, described in band[1] */
	size_t n;     /* number of processes: the owner and the peers */
	struct map_process process[1 + GPUL_IPC_MAX_PEERS];
};

/* Fill in the texts of the picture. */
void map_picture_make(const char *name, const gpul_ipc_share *share, struct map_picture *out);

/* Draw the picture in characters, for a terminal of 80 columns. */
void map_draw_text(const struct map_picture *p, struct out *o);

/* Draw the picture as a self-contained SVG file (no script, font or link), with light and dark colours. */
void map_draw_svg(const struct map_picture *p, struct out *o);

#endif
