/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compile a program in LLVM's bitcode by ORC and run its main, in sight of DCPI. LLVM 14 and later.
 *
 *	cc -c run.c $(llvm-config --cflags) && c++ -c listener.cpp $(llvm-config --cxxflags)
 *	c++ run.o listener.o $(llvm-config --ldflags --libs) $(pkg-config --libs dbgdyn) -o run
 *	clang -O1 -g -emit-llvm -c program.c && ./run program.bc
 */
#include "listener.h"

#include <llvm-c/Core.h>
#include <llvm-c/IRReader.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/OrcEE.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>

static void need(LLVMErrorRef error, const char *what)
{
	if (!error)
		return;
	fprintf(stderr, "run: %s: %s\n", what, LLVMGetErrorMessage(error));
	exit(1);
}

/* All that DCPI asks of the program: the layer that links objects has the listener. */
static LLVMOrcObjectLayerRef make_layer(void *unused, LLVMOrcExecutionSessionRef session,
					const char *triple)
{
	LLVMOrcObjectLayerRef layer =
		LLVMOrcCreateRTDyldObjectLinkingLayerWithSectionMemoryManager(session);

	(void)unused;
	(void)triple;
	LLVMOrcRTDyldObjectLinkingLayerRegisterJITEventListener(layer, dbgdyn_listener());
	return layer;
}

static LLVMOrcLLJITRef make_jit(void)
{
	LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
	LLVMOrcDefinitionGeneratorRef process;
	LLVMOrcLLJITRef jit;

	LLVMOrcLLJITBuilderSetObjectLinkingLayerCreator(builder, make_layer, NULL);
	need(LLVMOrcCreateLLJIT(&jit, builder), "LLVMOrcCreateLLJIT");
	need(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
		     &process, LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL),
	     "the program's own symbols");
	LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit), process);
	return jit;
}

static void add_file(LLVMOrcLLJITRef jit, const char *file)
{
	LLVMOrcThreadSafeContextRef context = LLVMOrcCreateNewThreadSafeContext();
	LLVMMemoryBufferRef text;
	LLVMModuleRef module;
	char *why;

	if (LLVMCreateMemoryBufferWithContentsOfFile(file, &text, &why) ||
	    LLVMParseIRInContext(LLVMOrcThreadSafeContextGetContext(context), text, &module,
				 &why)) {
		fprintf(stderr, "run: %s: %s\n", file, why);
		exit(1);
	}
	need(LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit),
					 LLVMOrcCreateNewThreadSafeModule(module, context)),
	     file);
	LLVMOrcDisposeThreadSafeContext(context);
}

int main(int argc, char **argv)
{
	LLVMOrcExecutorAddress address;
	LLVMOrcLLJITRef jit;
	int status;

	if (argc != 2)
		return fputs("usage: run FILE.bc\n", stderr), 2;
	LLVMInitializeNativeTarget();
	LLVMInitializeNativeAsmPrinter();
	jit = make_jit();
	add_file(jit, argv[1]);
	need(LLVMOrcLLJITLookup(jit, &address, "main"), "main");
	status = ((int (*)(void))(uintptr_t)address)();
	need(LLVMOrcDisposeLLJIT(jit), "LLVMOrcDisposeLLJIT");
	return status;
}
