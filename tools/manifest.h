/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of what an installation put where, which 'cmake --install' leaves for dcpiuninstall. */
#ifndef DCPI_MANIFEST_H
#define DCPI_MANIFEST_H

#include "base.h"

enum manifest_kind {
	MANIFEST_FILE, /* regular, with a checksum */
	MANIFEST_LINK, /* symbolic */
	MANIFEST_DIR,  /* that the installation made */
};

struct manifest_entry {
	enum manifest_kind kind;
	char *path;	 /* absolute, or relative to the prefix; no ".." */
	char *target;	 /* target of a link */
	uint8_t sum[32]; /* SHA-256 of a file */
};

/* In the list's order. Zero-initialize. */
struct manifest {
	struct manifest_entry *v;
	size_t nr, cap;
};

/* Lines after "dcpi-install 1": "file SHA256 PATH", "link TARGET PATH", "dir PATH". -DCPI_EVERSION,
 * -DCPI_EFORMAT with the line, -ENOMEM. Fuzzed. */
int manifest_parse(struct manifest *m, const char *text, size_t len, struct base_err *err);
void manifest_release(struct manifest *m);

#endif
