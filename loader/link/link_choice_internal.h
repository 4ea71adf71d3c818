/* link_choice_internal.h — links the relocatable images of all sources into one image. */
#ifndef GPULOAD_LOADER_LINK_LINK_CHOICE_INTERNAL_H
#define GPULOAD_LOADER_LINK_LINK_CHOICE_INTERNAL_H

#include "loader/choose/choose_internal.h"
#include "loader/link/link.h"

/* Link all images for which gpul_choice_links() is true.  Fills in *out as gpul_link() does; release it with gpul_linked_free(). */
gpul_status gpul_link_choice(const gpul_choice *c, gpul_linked *out, gpul_error *err);

#endif
