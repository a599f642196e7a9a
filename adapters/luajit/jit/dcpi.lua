-- SPDX-License-Identifier: BSD-2-Clause
-- What "luajit -jdcpi" and "luajit -jdcpi=FACILITY" look for.
return require("dcpi")
