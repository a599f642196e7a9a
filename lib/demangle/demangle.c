/* SPDX-License-Identifier: BSD-2-Clause */
/* Readable names of linker symbols of any scheme, and their cache. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "demangle_internal.h"

char *demangle_name(const char *linkage)
{
	size_t len = strnlen(linkage, DEMANGLE_MAX + 1), own;
	char *name;

	if (!dem_may(linkage) || len > DEMANGLE_MAX)
		return NULL;
	name = dem_rust(linkage);
	if (name || linkage[1] == 'R')
		return name;
	own = strcspn(linkage, "@"); /* "name@plt" */
	return dem_cxx(linkage, own, linkage + own);
}

bool demangle_off;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct base_map names; /* linker's name to readable name, or to "" if it has none */

static const char *made(const char *linkage)
{
	size_t len = strlen(linkage);
	char *name = base_map_get(&names, linkage, len);

	if (name)
		return name;
	name = demangle_name(linkage);
	if (!name)
		name = strdup("");
	if (name && base_map_set(&names, linkage, len, name) < 0) {
		free(name);
		name = NULL;
	}
	return name;
}

const char *demangle_shown(const char *linkage)
{
	const char *name;

	if (demangle_off || !linkage || !dem_may(linkage))
		return linkage;
	pthread_mutex_lock(&lock);
	name = made(linkage);
	pthread_mutex_unlock(&lock);
	return name && *name ? name : linkage;
}
