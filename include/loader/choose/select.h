/* select.h — selects the image of each unit that suits a device, as the driver itself does.
 *
 *     machine code for exactly this device, sm_90a before sm_90 whatever their order     else
 *     machine code for the same major version and the highest lower minor version        else
 *     the newest PTX not newer than the device, compute_90a before compute_90; the driver compiles it
 *
 * Machine code comes before PTX even if the PTX is the "a" variant and the machine code is not.  Of several equal images, the first
 * is taken if they are machine code, the LAST if they are PTX.  Observed on an H200 with driver 580.159 (CUDA 13.0), 31 fatbins.
 * Debug code (-G) is not preferred or avoided. */
#ifndef GPULOAD_LOADER_CHOOSE_SELECT_H
#define GPULOAD_LOADER_CHOOSE_SELECT_H

#include <stdbool.h>
#include <stdint.h>

#include "loader/image/images.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpul_target { /* the device, and the images that the caller allows */
	uint32_t cc;         /* compute capability of the device: 90 for 9.0 */
	bool machine_code;   /* false: the driver runs PTX only, for any target */
	uint32_t only_sm;    /* allow images for this architecture only; 0: any */
	char only_suffix;    /* allow this suffix only ('a' in 90a); 0: any or none */
	uint32_t only_kind;  /* allow this enum gpul_image_kind only; 0: any */
} gpul_target;

typedef enum gpul_verdict {
	GPUL_TAKEN,
	GPUL_LEFT_FOR_BETTER,   /* runs on the device, but another image of its unit suits better */
	GPUL_LEFT_OTHER_MAJOR,  /* machine code of another generation */
	GPUL_LEFT_NEWER,        /* machine code or PTX for a newer device */
	GPUL_LEFT_SPECIFIC,     /* code for "a" or "f" targets of another architecture or family */
	GPUL_LEFT_MACHINE_CODE, /* machine code, but the driver runs PTX only */
	GPUL_LEFT_NOT_ASKED,    /* excluded by --sm or --kind */
	GPUL_LEFT_DAMAGED,      /* selected, but it cannot be read */
} gpul_verdict;

/** Give every image of a list a verdict; at most one image of each unit gets TAKEN.
 *
 * @images    borrowed
 * @target    borrowed
 * @verdicts  one for each image; filled in.  Cannot fail: if no image suits, none gets TAKEN.  Any thread. */
void gpul_select(const gpul_images *images, const gpul_target *target, gpul_verdict *verdicts);

/** Return a phrase for --explain, such as "machine code for another generation of GPUs (sm_8x)". */
const char *gpul_verdict_text(gpul_verdict v);

#ifdef __cplusplus
}
#endif

#endif
