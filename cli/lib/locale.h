/* locale.h — finds out whether the output may contain characters that are not ASCII. */
#ifndef GPULOAD_CLI_LIB_LOCALE_H
#define GPULOAD_CLI_LIB_LOCALE_H

#include <stdbool.h>

/** True if the environment names a locale with UTF-8.
 *
 * Reads the first of LC_ALL, LC_CTYPE and LANG that is set and not empty.  The locale need not be installed: its name
 * says what the terminal shows.
 *
 * Threads any thread may call, but not while another one changes the environment
 * Source  POSIX.1-2017, XBD 8.2 Internationalization Variables */
bool locale_has_utf8(void);

#endif
