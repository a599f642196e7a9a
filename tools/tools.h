/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands. Each is one file with NAME_main(argc, argv), argv[0] being the command's name; it
 * returns the exit code (BASE_EXIT_*). To add one: a line here, a name in CMakeLists.txt.
 */
#ifndef DCPI_TOOLS_H
#define DCPI_TOOLS_H

#include "base.h"

/*
 * G: a question that the commands below it answer; X: name, what it does (no full stop); E: the
 * same, and the exit status for failures of a command whose 1 is an answer; P: the same as X of a
 * program of its own. In the order of "dcpi -help".
 */
#define TOOLS(G, P, X, E)                                                                          \
	G("Where did the time go?")                                                                \
	X(dcpiprof, "list procedures or images by their samples")                                  \
	X(dcpiwhatcg, "tell where the time of whole images has gone")                              \
	X(dcpitopcounts, "list the instructions with most samples")                                \
	X(dcpilist, "list a procedure's instructions and lines with their samples")                \
	X(dcpitop, "show where the time goes now, on the whole screen")                            \
	X(dcpireport, "make a page for browsers of where the time went")                           \
	G("What called it?")                                                                       \
	X(dcpicallers, "list what called procedures, and what they called, by samples")            \
	X(dcpicalltree, "show the calls that led to samples as a tree")                            \
	G("Why is it slow there?")                                                                 \
	X(dcpicalc, "estimate how often blocks of code ran, and what they cost")                   \
	X(dcpitopstalls, "list the instructions that stalled most")                                \
	X(dcpiflow, "print a procedure's flow graph with its samples")                             \
	X(dcpisource, "put source lines into printed flow graphs")                                 \
	X(dcpi2ps, "draw printed flow graphs")                                                     \
	G("What did it compute with?")                                                             \
	X(dcpivlst, "list procedures with the values at their instructions")                       \
	X(dcpivarg, "tell arguments, callers, constant blocks and slow loads")                     \
	X(dcpildlatency, "tell which loads were far, and how often")                               \
	X(dcpiprofileme, "show what the hardware told of sampled instructions")                    \
	X(dcpivcat, "print value profiles")                                                        \
	G("What has changed?")                                                                     \
	X(dcpitimeline, "show how shares of the samples changed over time")                        \
	X(dcpidiff, "compare two sets of samples by procedure")                                    \
	X(dcpistats, "show how much procedures vary between several sets of samples")              \
	E(dcpiregress, "tell which routines got slower between two sets of samples", 2)            \
	X(dcpikdiff, "keep the running kernel's code, and list where it was patched")              \
	G("How is the machine sampled?")                                                           \
	P(dcpid, "the daemon: samples the machine, and keeps a database")                          \
	P(dcpirun, "run one program, and profile it without any rights")                           \
	X(dcpictl, "flush, begin an epoch, quit, or ask the daemon for its status")                \
	X(dcpiflush, "put the daemon's samples on disk")                                           \
	X(dcpiepoch, "begin a new epoch")                                                          \
	X(dcpiquit, "end the daemon")                                                              \
	E(dcpilabel, "run a program whose samples have a label", 125)                              \
	G("What is in a database, and where are its images?")                                      \
	X(dcpicat, "print profile files")                                                          \
	X(dcpitar, "pack epochs with all that is needed to read them elsewhere")                   \
	X(dcpiscan, "map identities of programs and libraries to where they are")                  \
	X(dcpidis, "disassemble an image or some of its procedures")                               \
	G("What ran on a whole fleet?")                                                            \
	P(dcpiship, "send a database's samples to the store of a fleet")                           \
	P(dcpifetch, "copy a part of a fleet's store into a database")                             \
	G("How often did it run, exactly?")                                                        \
	E(dcpix, "run a program and count each instruction and branch exactly", 125)               \
	X(dcpisumxct, "add up exact counts of several runs")                                       \
	X(dcpicosts, "keep measured costs of blocks, for later estimates")                         \
	X(dcpicoverage, "list the source lines that no sample shows to have run")                  \
	G("What do other programs take from it?")                                                  \
	X(dcpi2bb, "tell a compiler how often source lines ran")                                   \
	X(dcpifdo, "write a program's traced branches for compilers and linkers")                  \
	X(dcpi2pix, "write how often blocks ran as pixie or callgrind would")                      \
	X(dcpiexport, "write samples in the formats of other programs")                            \
	X(dcpicc, "compile C so that dcpisource knows each instruction's token")                   \
	G("What is installed?")                                                                    \
	X(dcpiversion, "print the release, and what a report of a defect needs")                   \
	X(dcpiuninstall, "remove what the installation put on this machine")

struct tool {
	const char *name; /* NULL: a question */
	const char *summary;
	int (*main)(int argc, char **argv); /* NULL: a program of its own, or a question */
	int failed;			    /* its exit status where it failed */
};

#define X(name, ...) int name##_main(int argc, char **argv);
#define NONE(...)
TOOLS(NONE, NONE, X, X)
#undef NONE
#undef X

#endif
