/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands. Each is one file that defines its struct tool, NAME_tool. To add one: a line here,
 * a name in CMakeLists.txt.
 */
#ifndef DCPI_TOOLS_H
#define DCPI_TOOLS_H

#include "base.h"

/*
 * G: a question that the commands below it answer; X: the name of one; P: the name of a program of
 * its own, and what it does (no full stop). In the order of "dcpi -help".
 */
#define TOOLS(G, P, X)                                                                             \
	G("Where did the time go?")                                                                \
	X(dcpiprof)                                                                                \
	X(dcpiwhatcg)                                                                              \
	X(dcpitopcounts)                                                                           \
	X(dcpilist)                                                                                \
	X(dcpitop)                                                                                 \
	X(dcpireport)                                                                              \
	G("What called it?")                                                                       \
	X(dcpicallers)                                                                             \
	X(dcpicalltree)                                                                            \
	G("Why is it slow there?")                                                                 \
	X(dcpicalc)                                                                                \
	X(dcpitopstalls)                                                                           \
	X(dcpiflow)                                                                                \
	X(dcpisource)                                                                              \
	X(dcpi2ps)                                                                                 \
	G("What did it compute with?")                                                             \
	X(dcpivlst)                                                                                \
	X(dcpivarg)                                                                                \
	X(dcpildlatency)                                                                           \
	X(dcpiprofileme)                                                                           \
	X(dcpivcat)                                                                                \
	G("What has changed?")                                                                     \
	X(dcpitimeline)                                                                            \
	X(dcpidiff)                                                                                \
	X(dcpistats)                                                                               \
	X(dcpiregress)                                                                             \
	X(dcpikdiff)                                                                               \
	G("How is the machine sampled?")                                                           \
	P(dcpid, "the daemon: samples the machine, and keeps a database")                          \
	P(dcpirun, "run one program, and profile it without any rights")                           \
	X(dcpictl)                                                                                 \
	X(dcpiflush)                                                                               \
	X(dcpiepoch)                                                                               \
	X(dcpiquit)                                                                                \
	X(dcpilabel)                                                                               \
	G("What is in a database, and where are its images?")                                      \
	X(dcpicat)                                                                                 \
	X(dcpitar)                                                                                 \
	X(dcpiscan)                                                                                \
	X(dcpidis)                                                                                 \
	G("What ran on a whole fleet?")                                                            \
	P(dcpiship, "send a database's samples to the store of a fleet")                           \
	P(dcpifetch, "copy a part of a fleet's store into a database")                             \
	G("How often did it run, exactly?")                                                        \
	X(dcpix)                                                                                   \
	X(dcpisumxct)                                                                              \
	X(dcpicosts)                                                                               \
	X(dcpicoverage)                                                                            \
	G("What do other programs take from it?")                                                  \
	X(dcpi2bb)                                                                                 \
	X(dcpifdo)                                                                                 \
	X(dcpi2pix)                                                                                \
	X(dcpiexport)                                                                              \
	X(dcpicc)                                                                                  \
	G("What is installed?")                                                                    \
	X(dcpiversion)                                                                             \
	X(dcpiuninstall)

struct tool {
	const struct base_cmd *cmd;
	const char *summary; /* in the list of commands; NULL: that of @cmd */
	/* argv[0] is the command's name; returns the exit status (BASE_EXIT_*). */
	int (*main)(int argc, char **argv);
	int failed; /* its exit status where it failed; 0: BASE_EXIT_FAILED */
};

#define X(name) extern const struct tool name##_tool;
#define NONE(...)
TOOLS(NONE, NONE, X)
#undef NONE
#undef X

#endif
