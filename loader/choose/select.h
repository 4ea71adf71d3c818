/* select.h — which image of each unit a device gets: the one that the driver itself would take.
 *
 *     exactly its machine code; sm_90a before sm_90 on a 9.0, in whatever order they stand   else
 *     machine code of the same major and the highest lower minor   else
 *     the newest PTX that is not above it, compute_90a before compute_90; the driver compiles it
 *
 * Machine code comes before PTX even where the PTX is the "a" variant and the machine code is not.
 * Of several alike, machine code is taken from the first, PTX from the LAST of them.  Seen on an
 * H200 with driver 580.159 (CUDA 13.0), 31 fatbins; debug code (-G) is not told apart. */
#ifndef GPULOAD_LOADER_CHOOSE_SELECT_H
#define GPULOAD_LOADER_CHOOSE_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/images.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_target { /* what there is to run on, and what the caller insists on */
	uint32_t cc;              /* compute capability of the device: 90 of 9.0 */
	bool machine_code;        /* false: the driver runs PTX only, of any target */
	uint32_t only_sm;         /* 0: any; else images for that architecture alone, */
	char only_suffix;         /* 0: with any suffix or none; else with that: 90a */
	uint32_t only_kind;       /* 0: any; else enum gpul_image_kind */
} gpul_target;

typedef enum gpul_verdict {
	GPUL_TAKEN,
	GPUL_LEFT_FOR_BETTER,     /* would run, but another of its unit suits better */
	GPUL_LEFT_OTHER_MAJOR,    /* machine code of another generation */
	GPUL_LEFT_NEWER,          /* machine code or PTX for a newer device */
	GPUL_LEFT_SPECIFIC,       /* "a" or "f" code of another architecture or family */
	GPUL_LEFT_MACHINE_CODE,   /* the driver runs PTX only */
	GPUL_LEFT_NOT_ASKED,      /* --sm or --kind exclude it */
	GPUL_LEFT_DAMAGED,        /* taken at first, but it cannot be read */
} gpul_verdict;

/** Judge every image of a list: at most one of each unit is TAKEN.
 *
 * @images    borrowed
 * @target    borrowed
 * @verdicts  room for as many as the list has; filled in
 * Cannot fail: no image fits is a list without TAKEN.  Any thread. */
void gpul_select(const gpul_images *images, const gpul_target *target, gpul_verdict *verdicts);

/** "machine code for another generation of GPUs (sm_8x)": one phrase, for --explain. */
const char *gpul_verdict_text(gpul_verdict v);

#ifdef __cplusplus
}
#endif

#endif
