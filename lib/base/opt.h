/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/base only: what the parser of options and their help share. */
#ifndef DCPI_BASE_OPT_H
#define DCPI_BASE_OPT_H

#include "base.h"

/* The @i-th listed option: the command's own, then the common ones. NULL after the last. */
const struct base_opt *base_opt_nth(const struct base_cmd *cmd, size_t i);
/* -help-man and -help-options. */
void base_opt_man(const struct base_cmd *cmd, FILE *to);
void base_opt_names(const struct base_cmd *cmd, FILE *to);

#endif
