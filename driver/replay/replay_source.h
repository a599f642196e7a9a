/* SPDX-License-Identifier: BSD-2-Clause */
/* The source "replay": a recorded stream (docs/format/replay.md), or a file of perf's. */
#ifndef DCPI_REPLAY_SOURCE_H
#define DCPI_REPLAY_SOURCE_H

#include <stdio.h>

#include "driver.h"

/* As driver_open. Opens the file at @config->replay_path; "-" is standard input. */
int replay_open(const struct driver_config *config, struct driver **out, struct base_err *err);
/* The same of a recorded stream alone. @in is closed with the driver, also when this fails; @name
 * stands in messages. */
int replay_open_stream(FILE *in, const char *name, struct driver **out, struct base_err *err);

#endif
