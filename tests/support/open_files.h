/* open_files.h — counts what a process has open, for tests that look for leaks. */
#ifndef GPULOAD_TESTS_SUPPORT_OPEN_FILES_H
#define GPULOAD_TESTS_SUPPORT_OPEN_FILES_H

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

/* Return the number of entries of a folder, with . and .. */
static inline unsigned count_entries(const char *folder)
{
	DIR *d = opendir(folder);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* Return a number that grows with each open descriptor of this process. */
static inline unsigned count_fds(void)
{
	return count_entries("/proc/self/fd");
}

/* Return the number of file mappings, including tmpfs, but not of anonymous ones, which malloc() makes. */
static inline unsigned count_mappings(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned n = 0;

	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		n += strchr(line, '/') != NULL;
	fclose(f);
	return n;
}

#endif
