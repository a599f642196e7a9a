/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid's configuration file (dcpid.json(5)): a JSON object whose members are options of the
 * command line by their names, without the dash. Flags take true or false, numbers a number, what
 * may be repeated a string or a list of strings.
 */
#ifndef DCPI_CONFIG_H
#define DCPI_CONFIG_H

#include "base.h"

#define CONFIG_MAX (64u << 10)

struct json_object;

/*
 * Set the options of @cmd (at most 64) that @text names; of those in @given (base_cmd.given), which
 * the command line has set, the values are only checked. Strings point into *@root, which the
 * caller puts, or keeps as long as the options; it is set, to NULL maybe, on failure as well.
 * 0; -DCPI_EUSAGE with the line in @err: malformed, unknown or twice the same, a value that does
 * not fit; -DCPI_ELIMIT: longer than CONFIG_MAX; -ENOMEM.
 */
int config_parse(const char *text, size_t len, const char *name, const struct base_cmd *cmd,
		 uint64_t given, struct json_object **root, struct base_err *err);
/* The same of a file. Also what base_file_read returns. */
int config_read(const char *path, const struct base_cmd *cmd, uint64_t given,
		struct json_object **root, struct base_err *err);

#endif
